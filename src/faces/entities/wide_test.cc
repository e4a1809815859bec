// Documents and models with very many fields: what a turn does with them is bounded.

#include <fmt/format.h>

#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

// {"f0000000":1,"f0000001":1,...}
std::string wide(size_t fields, size_t from = 0) {
  std::string out;
  for (size_t i = 0; i < fields; ++i)
    out += fmt::format("{}\"f{:07}\":1", out.empty() ? "{" : ",", from + i);
  return out + "}";
}

struct Wide : testing::Test {
  FaceFixture s;
  // A model that grows with its documents.
  void add_growing_model() {
    ASSERT_EQ(s.send("POST", "/model/import/JSON/SAMPLE_DATA/g/1", R"({"k":1})").status, 200);
    ASSERT_EQ(s.send("POST", "/model/g/1/changeLevel/STRUCTURAL").status, 200);
    ASSERT_EQ(s.send("PUT", "/model/g/1/lock").status, 200);
  }
  static std::string id_of(const TestResponse& made) {
    return made.body.array()[0].find("entityIds")->array()[0].string();
  }
  void expect_too_wide(const TestResponse& h) {
    EXPECT_EQ(h.status, 400) << h.text.substr(0, 300);
    EXPECT_NE(h.text.find("100000 fields"), std::string::npos) << h.text.substr(0, 300);
  }
};

TEST_F(Wide, documents_and_samples_with_too_many_fields_are_refused) {
  const std::string over = wide(limits::kDocumentFields + 1);
  expect_too_wide(s.send("POST", "/model/import/JSON/SAMPLE_DATA/big/1", over));
  EXPECT_EQ(s.send("GET", "/model/export/SIMPLE_VIEW/big/1").status, 404);
  add_growing_model();
  expect_too_wide(s.send("POST", "/entity/JSON/g/1", over));
  // Members of objects in lists count as well; elements do not.
  std::string list = R"({"k":1,"a":[)";
  for (size_t i = 0; i <= limits::kDocumentFields; ++i)
    list += R"({"x":1},)";
  expect_too_wide(s.send("POST", "/entity/JSON/g/1", list + "{}]}"));
  std::string numbers = R"({"k":1,"n":[1)";
  for (size_t i = 0; i < 400'000; ++i)
    numbers += ",1";
  const TestResponse made = s.send("POST", "/entity/JSON/g/1", numbers + "]}");
  EXPECT_EQ(made.status, 200) << made.text.substr(0, 300);
  expect_too_wide(s.send("PUT", "/entity/JSON/" + id_of(made), over));
  EXPECT_EQ(s.send("GET", "/entity/stats/g/1").body.find("count")->as_int64(), 1);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST_F(Wide, a_model_with_very_many_fields_does_not_grow_any_more) {
  add_growing_model();
  const std::string most = wide(limits::kDocumentFields - 1);
  const TestResponse first = s.send("POST", "/entity/JSON/g/1", most);
  ASSERT_EQ(first.status, 200) << first.text.substr(0, 300);
  const std::string more = wide(1, 5'000'000);
  expect_too_wide(s.send("POST", "/entity/JSON/g/1", more));
  expect_too_wide(s.send("PUT", "/entity/JSON/" + id_of(first), more));
  // A patch counts the fields that are there.
  expect_too_wide(s.send("PATCH", "/entity/JSON/" + id_of(first), wide(3),
                         {{"Content-Type", "application/merge-patch+json"}}));
  // A document without new fields is still written.
  EXPECT_EQ(s.send("POST", "/entity/JSON/g/1", wide(3)).status, 200);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST_F(Wide, the_growth_of_a_model_in_one_transaction_is_bounded) {
  add_growing_model();
  ASSERT_EQ(s.send("POST", "/entity/JSON/g/1", wide(20'000)).status, 200);
  // Each document has one more new field: without a bound each would copy the whole model.
  std::string items;
  for (size_t i = 0; i < 2'000; ++i)
    items += fmt::format("{}{}", items.empty() ? "[" : ",", wide(1, 6'000'000 + i));
  const TestResponse refused = s.send("POST", "/entity/JSON/g/1", items + "]");
  EXPECT_EQ(refused.status, 422) << refused.text.substr(0, 300);
  EXPECT_EQ(refused.code(), "MODEL_GROWS_TOO_OFTEN");
  EXPECT_LT(s.kernel.last_turn, std::chrono::seconds(10));
  EXPECT_EQ(s.send("GET", "/entity/stats/g/1").body.find("count")->as_int64(), 1);
}

}  // namespace
}  // namespace pawl::entities

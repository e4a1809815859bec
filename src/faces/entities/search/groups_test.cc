#include <fmt/format.h>

#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

TEST(groups, an_unknown_model_has_a_count_of_zero) {
  FaceFixture s;
  EXPECT_EQ(s.send("GET", "/entity/stats/nope/1").text,
            R"({"modelName":"nope","modelVersion":1,"count":0})");
  EXPECT_EQ(s.send("GET", "/entity/stats/states/nope/1").text, "[]");
}

TEST(groups, arrays_cannot_be_grouped_by) {
  FaceFixture s;
  s.add_model();
  for (const char* path : {"", "$.k[*]", "$.k[0]"})
    EXPECT_EQ(
        s.send("POST", "/entity/stats/m/1/query", fmt::format(R"({{"groupBy":["{}"]}})", path))
            .code(),
        "INVALID_GROUP_BY_PATH")
        << path;
  EXPECT_EQ(s.send("POST", "/entity/stats/m/1/query",
                   R"({"groupBy":["$.k"],"aggregations":[{"op":"sum","field":"$.n[0]"}]})")
                .code(),
            "INVALID_AGGREGATION_FIELD");
}

TEST(groups, groups_of_equal_size_are_sorted_by_key) {
  FaceFixture s;
  s.add_model();
  for (const char* k : {R"("a b")", R"("a")", "null", R"("a\"")", R"("z")", R"("z")"})
    s.create(fmt::format(R"({{"k":{}}})", k));
  TestResponse groups = s.send("POST", "/entity/stats/m/1/query", R"({"groupBy":["$.k"]})");
  std::string order;
  for (const json::Value& g : groups.body.array())
    order += json::print(*g.find("groupKey")->array()[0].find("value")) + " ";
  EXPECT_EQ(order, R"("z" null "a" "a b" "a\"" )");
  EXPECT_EQ(s.send("POST", "/entity/stats/m/1/query", R"({"groupBy":["$.k","k"]})").code(),
            "DUPLICATE_GROUP_BY");
  EXPECT_EQ(s.send("POST", "/entity/stats/m/1/query", R"({"groupBy":["state","$.state"]})").status,
            200);
}

TEST(groups, the_values_of_the_groups_are_bounded) {
  FaceFixture s;
  s.add_model();
  for (int i = 0; i < 5; ++i)
    s.create(fmt::format(R"({{"k":"{}{}","n":1}})", i, std::string(4'000'000, 'x')));
  EXPECT_EQ(s.send("POST", "/entity/stats/m/1/query", R"({"groupBy":["$.k"]})").code(),
            "GROUP_CARDINALITY_EXCEEDED");
}

}  // namespace
}  // namespace pawl::entities

// Entities through the HTTP face: stored form, merge patches, ids, large removals and counts.

#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

TEST(entities, numbers_keep_their_digits_and_names_are_sorted) {
  FaceFixture s;
  EXPECT_EQ(s.send("POST", "/model/import/JSON/SAMPLE_DATA/m/1",
                   R"({"b":1.10,"a":12345678901234567890123,"c":1E400})")
                .status,
            200);
  EXPECT_EQ(s.send("PUT", "/model/m/1/lock").status, 200);
  std::string id = s.create(R"({"c":1E400,"b":1.10,"a":12345678901234567890123})");
  EXPECT_NE(s.send("GET", "/entity/" + id)
                .text.find(R"("data":{"a":12345678901234567890123,"b":1.10,"c":1E400})"),
            std::string::npos);
}

TEST(entities, a_merge_patch_follows_rfc_7386) {
  const char* rows[][3] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"b":1})", R"({"a":2,"c":3})", R"({"a":2,"b":1,"c":3})"},
      {R"(["a"])", R"({"a":{"b":null,"c":1}})", R"({"a":{"c":1}})"},
      {R"({"a":1})", R"(["c"])", R"(["c"])"},
      {R"({"e":null})", R"({"a":1})", R"({"a":1,"e":null})"},
  };
  for (const auto& [target, patch, result] : rows) {
    json::Value value = *json::parse(target);
    merge_sorted(value, *json::parse(patch));
    EXPECT_EQ(json::print(value), result) << target << " " << patch;
  }
}

TEST(entities, a_chunk_is_all_or_nothing) {
  FaceFixture s;
  s.add_model();
  TestResponse h = s.send("POST", "/entity/JSON/m/1", R"([{"n":1},{"n":"bad"}])");
  EXPECT_EQ(h.code(), "INCOMPATIBLE_TYPE");
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
  h = s.send("POST", "/entity/JSON/m/1?transactionWindow=1", R"([{"n":1},{"n":"bad"},{"n":3}])");
  EXPECT_EQ(h.status, 200);
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 1);
}

TEST(entities, ids_of_one_model_are_adjacent_and_ordered) {
  Dice dice({1, 2});
  std::string last;
  for (size_t i = 0; i < 1000; ++i) {
    std::string id = new_entity_id(dice, 1'700'000'000 * kSecond, i, "m", 1);
    EXPECT_TRUE(is_uuid(id));
    EXPECT_EQ(id[14], '1');
    EXPECT_LT(last, id);
    EXPECT_TRUE(entity_key("t", id).starts_with(entity_prefix("t", "m", 1)));
    last = id;
  }
}

TEST(entities, large_removals_take_several_turns) {
  FaceFixture s;
  s.add_model();
  for (int i = 0; i < 11; ++i) {
    std::string all = "[";
    for (int j = 0; j < 1000; ++j)
      all += (j ? "," : "") + (R"({"n":)" + std::to_string(j) + "}");
    ASSERT_EQ(s.send("POST", "/entity/JSON/m/1?transactionWindow=1000", all + "]").status, 200);
  }
  TestResponse asked =
      s.send("DELETE", "/entity/m/1", R"({"type":"function","function":{"name":"old"}})");
  EXPECT_EQ(asked.status, 400) << asked.text;
  TestResponse h =
      s.send("DELETE", "/entity/m/1",
             R"({"type":"simple","jsonPath":"$.n","operatorType":"GREATER_THAN","value":499})");
  EXPECT_EQ(h.body.find("deleteResult")->find("numberOfEntititesRemoved")->as_int64(), 5500)
      << h.text;
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 5500);
  EXPECT_EQ(
      s.send("PUT", "/model/m/1/unlock").body.find("properties")->find("entityCount")->as_int64(),
      5500);
}

TEST(counts, counts_follow_every_state_change_and_survive_a_restart) {
  FaceFixture s;
  s.add_model();
  std::string id = s.create(), other = s.create();
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id + "/DELETE", R"({"n":1})").status, 200);
  EXPECT_EQ(s.send("DELETE", "/entity/" + other).status, 200);
  std::string live = s.send("GET", "/entity/stats/states/m/1").text;
  EXPECT_EQ(live, R"([{"modelName":"m","modelVersion":1,"state":"DELETED","count":1}])");
  Counts again(s.kernel);
  EXPECT_TRUE(again.start());
  EXPECT_EQ(again.total("t", "m", 1), 1);
  EXPECT_EQ(again.of("t").rows()[0].state, "DELETED");
}

}  // namespace
}  // namespace pawl::entities

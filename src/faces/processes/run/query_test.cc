// Stored queries: expressions of a definition over the variables of an instance.

#include "faces/processes/face_fixture_test.h"
#include "faces/processes/limits.h"

namespace pawl::processes {
namespace {

std::string asked(const std::string& queries) {
  return definition("a", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd,
                    R"("queries":)" + queries + ",");
}

TEST(query, a_stored_expression_is_evaluated_over_the_variables) {
  FaceFixture s;
  s.upload(asked(R"x({"total":"sum(prices)","late":"days > 3","bad":"nothing.there"})x"));
  std::string id = s.start("a", R"({"prices":[1,2,3],"days":5})");
  const std::string path = "/pawl/v1/processes/instances/" + id + "/queries";
  json::Value answer = s.get(path + "/total");
  EXPECT_EQ(s.last_status, 200) << json::print(answer);
  EXPECT_EQ(answer.find("value")->as_int64(), 6);
  EXPECT_EQ(answer.string_or("status"), "WAITING");
  s.get(path + "/bad");
  EXPECT_EQ(s.last_status, 400);
  json::Value none = s.get(path + "/none");
  EXPECT_EQ(s.last_status, 404);
  EXPECT_NE(none.string_or("reason").find("it has total, late, bad"), std::string::npos);
  json::Value all = s.get(path);
  ASSERT_EQ(all.find("items")->array().size(), 3u);
  EXPECT_TRUE(all.find("items")->array()[1].find("value")->boolean());
  EXPECT_TRUE(all.find("items")->array()[2].find("error"));
  s.post("/v1/instances/" + id + "/signals/w", R"({"prices":[10]})");
  EXPECT_EQ(s.get(path + "/total").find("value")->as_int64(), 10) << "also when it has ended";
  s.tenant = "other";
  s.get(path + "/total");
  EXPECT_EQ(s.last_status, 404);
}

TEST(query, bad_queries_refuse_the_upload) {
  FaceFixture s;
  std::string many = "{";
  for (size_t i = 0; i <= kMaxQueries; ++i)
    many += (i ? ",\"q" : "\"q") + std::to_string(i) + "\":\"1\"";
  for (const auto& [queries, words] : std::initializer_list<std::pair<std::string, const char*>>{
           {R"({"q":"1 +"})", "query \"q\" is not an expression"},
           {R"({"q":1})", "queries must be an object of strings, but it holds number"},
           {R"({"":"1"})", "the name of a query has 1 to 512 bytes"},
           {R"([1])", "queries must be an object"},
           {many + "}", "queries: at most 100, got 101"}}) {
    json::Value answer = s.post("/v1/definitions", asked(queries));
    EXPECT_EQ(s.last_status, 400);
    EXPECT_NE(answer.string_or("reason").find(words), std::string::npos) << json::print(answer);
  }
}

TEST(query, a_query_that_makes_too_much_is_refused) {
  FaceFixture s;
  s.upload(asked(R"x({"big":"map(1..1000, repeat('x', 100000))"})x"));
  std::string id = s.start("a");
  s.get("/pawl/v1/processes/instances/" + id + "/queries/big");
  EXPECT_EQ(s.last_status, 400);
}

}  // namespace
}  // namespace pawl::processes

// inputSchema and outputsSchema: what they refuse, and where.

#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

const std::string kChecked =
    R"({"id":"a","name":"a","inputSchema":{"type":"object","required":["amount"],"properties":{"amount":{"type":"number","minimum":1}}},"steps":[
  {"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"u","outputsSchema":{"properties":{"score":{"type":"integer"}},"additionalProperties":false}},
  {"id":"u","name":"u","type":"USER_TASK","nextStep":"w","outputsSchema":{"required":["approved"]}},
  {"id":"w","name":"w","type":"WAIT","nextStep":"end","outputsSchema":{"properties":{"n":{"maximum":3}}}},
  {"id":"end","name":"e","type":"END"}]})";

TEST(schemas, a_start_must_match_the_input_schema) {
  FaceFixture s;
  s.upload(kChecked);
  auto refused = [&](const std::string& variables) {
    return std::string(
        s.post("/v1/instances", R"({"definitionId":"a","variables":)" + variables + "}")
            .string_or("reason"));
  };
  EXPECT_EQ(refused(R"({"amount":"x"})"),
            "the variables do not match the inputSchema of definition \"a\": at '/amount': got "
            "string, want number");
  EXPECT_EQ(s.last_status, 400);
  EXPECT_NE(refused("{}").find("at '': missing property \"amount\""), std::string::npos);
  EXPECT_EQ(s.last_status, 400);
  EXPECT_EQ(s.get("/v1/instances").find("total")->as_int64(), 0)
      << "a refused start leaves nothing";
  s.start("a", R"({"amount":2})");
  s.verify();
}

TEST(schemas, a_completion_must_match_the_outputs_schema) {
  FaceFixture s;
  s.upload(kChecked);
  std::string id = s.start("a", R"({"amount":2})"), job = s.take("j");
  EXPECT_EQ(s.complete(job, R"({"score":"high"})"), 400);
  EXPECT_EQ(s.complete(job, R"({"other":1})"), 400);
  EXPECT_EQ(s.status(id), "ACTIVE");
  EXPECT_EQ(s.variables(id), R"({"amount":2})");
  EXPECT_EQ(s.complete(job, R"({"score":7})"), 204) << "the worker may try again";
  json::Value answer =
      s.post("/v1/instances/" + id + "/user-tasks/u/complete", R"({"variables":{}})");
  EXPECT_EQ(s.last_status, 400);
  EXPECT_EQ(answer.string_or("reason"),
            "the variables do not match the outputsSchema of step \"u\": at '': missing property "
            "\"approved\"");
  s.post("/v1/instances/" + id + "/user-tasks/u/complete", R"({"variables":{"approved":true}})");
  EXPECT_EQ(s.last_status, 204);
  s.post("/v1/instances/" + id + "/signals/w", R"({"n":4})");
  EXPECT_EQ(s.last_status, 400);
  s.post("/v1/instances/" + id + "/signals/w", R"({"n":3})");
  EXPECT_EQ(s.status(id), "COMPLETED");
  s.verify();
}

TEST(schemas, a_chained_start_that_does_not_match_fails_the_next_instance) {
  FaceFixture s;
  s.upload(kChecked);
  s.upload(
      R"({"id":"before","name":"b","autoStartNextWorkflow":true,"nextWorkflowId":"a","steps":[{"id":"end","name":"e","type":"END"}]})");
  std::string id = s.start("before", R"({"amount":0})");
  std::string next(s.get("/v1/instances/" + id).string_or("nextInstanceId"));
  EXPECT_EQ(s.status(id), "COMPLETED");
  EXPECT_EQ(s.status(next), "FAILED");
  EXPECT_NE(s.reason(next).find("InputSchemaMismatch: "), std::string::npos) << s.reason(next);
  s.verify();
}

TEST(schemas, a_bad_schema_refuses_the_upload_with_its_place) {
  FaceFixture s;
  json::Value answer = s.post(
      "/v1/definitions",
      R"({"id":"a","name":"a","inputSchema":{"properties":{"a":{"type":"nmber"}}},"steps":[{"id":"end","name":"e","type":"END"}]})");
  EXPECT_EQ(s.last_status, 400);
  EXPECT_NE(answer.string_or("reason").find(
                "inputSchema is not a JSON Schema of draft 2020-12: at '/properties/a/type'"),
            std::string::npos)
      << answer.string_or("reason");
  answer = s.post(
      "/v1/definitions",
      R"({"id":"a","name":"a","steps":[{"id":"end","name":"e","type":"END","outputsSchema":{"type":"object"}}]})");
  EXPECT_EQ(s.last_status, 201);
  EXPECT_NE(json::print(*answer.find("warnings")).find("outputsSchema has no effect on END"),
            std::string::npos);
}

// The check of a schema that tries very many alternatives ends.
TEST(schemas, the_work_of_a_check_is_limited) {
  FaceFixture s;
  std::string defs = R"("l0":{"const":0})";
  for (int i = 1; i < 40; ++i) {
    std::string below = R"({"$ref":"#/$defs/l)" + std::to_string(i - 1) + "\"}";
    defs += ",\"l" + std::to_string(i) + R"(":{"anyOf":[)" + below + "," + below + "]}";
  }
  s.upload(R"({"id":"a","name":"a","inputSchema":{"$ref":"#/$defs/l39","$defs":{)" + defs +
           R"(}},"steps":[{"id":"end","name":"e","type":"END"}]})");
  json::Value answer = s.post("/v1/instances", R"({"definitionId":"a"})");
  EXPECT_EQ(s.last_status, 400);
  EXPECT_NE(answer.string_or("reason").find("takes more than"), std::string::npos);
}

}  // namespace
}  // namespace pawl::processes

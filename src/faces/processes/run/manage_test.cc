// Definitions are managed: versions, activation, retirement, deletion, differences.

#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

const std::string kOps = "/pawl/v1/processes/definitions/";
const std::string kOne = definition("a", kEnd);
const std::string kTwo =
    definition("a", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd);

int64_t version_of(FaceFixture& s, const std::string& id) {
  return *s.get("/v1/instances/" + id).find("definitionVersion")->as_int64();
}

TEST(definitions, an_old_text_becomes_active_again_and_says_so) {
  FaceFixture s;
  s.upload(kOne);
  s.upload(kTwo);
  EXPECT_EQ(version_of(s, s.start("a")), 2);
  json::Value answer = s.post("/v1/definitions", kOne);
  EXPECT_EQ(s.last_status, 201);
  EXPECT_EQ(answer.find("version")->as_int64(), 1);
  ASSERT_TRUE(answer.find("activated"));
  EXPECT_EQ(version_of(s, s.start("a")), 1);
  EXPECT_EQ(s.get("/v1/definitions/a").find("version")->as_int64(), 1);
  EXPECT_FALSE(s.post("/v1/definitions", kOne).find("activated")) << "it is active already";
  s.post(kOps + "a/activate", R"({"version":2})");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(version_of(s, s.start("a")), 2);
  s.post(kOps + "a/activate", R"({"version":3})");
  EXPECT_EQ(s.last_status, 404);
  s.post(kOps + "a/activate", "{}");
  EXPECT_EQ(s.last_status, 400);
  json::Value versions = s.get(kOps + "a/versions");
  ASSERT_EQ(versions.find("items")->array().size(), 2u);
  EXPECT_FALSE(versions.find("items")->array()[0].find("active")->boolean());
  EXPECT_TRUE(versions.find("items")->array()[1].find("active")->boolean());
  s.verify();
}

// A frame of an earlier version: the old text did not become active.
TEST(definitions, an_upload_of_an_earlier_version_replays_as_it_was) {
  FaceFixture s;
  s.upload(kOne);
  s.upload(kTwo);
  Input input;
  input.program = kProgram;
  input.verb = verb::upload;
  input.body = kOne;
  input.caller.tenant = FaceFixture::kTenant;
  s.submit(std::move(input), [](Result<Answer> answer) { EXPECT_TRUE(answer); });
  EXPECT_EQ(version_of(s, s.start("a")), 2);
  s.verify();
}

TEST(definitions, a_retired_definition_starts_nothing_until_a_version_is_activated) {
  FaceFixture s;
  s.upload(kOne);
  s.upload(
      R"({"id":"before","name":"b","autoStartNextWorkflow":true,"nextWorkflowId":"a","steps":[{"id":"end","name":"e","type":"END"}]})");
  s.post(kOps + "a/retire", R"({"reason":"old"})");
  EXPECT_EQ(s.last_status, 200);
  json::Value refused = s.post("/v1/instances", R"({"definitionId":"a"})");
  EXPECT_EQ(s.last_status, 409);
  EXPECT_NE(refused.string_or("reason").find("is retired (old)"), std::string::npos);
  std::string chained = s.start("before");
  EXPECT_EQ(s.status(chained), "COMPLETED") << "its chain waits";
  EXPECT_EQ(s.get("/v1/definitions").find("total")->as_int64(), 2) << "it is still listed";
  s.post(kOps + "a/activate", R"({"version":1})");
  s.start("a");
  s.verify();
}

TEST(definitions, a_definition_is_deleted_when_nothing_runs) {
  FaceFixture s;
  s.upload(kTwo);
  std::string id = s.start("a");
  json::Value refused = s.call("DELETE", kOps + "a");
  EXPECT_EQ(s.last_status, 409) << json::print(refused);
  s.post("/v1/instances/" + id + "/signals/w", "");
  s.call("DELETE", kOps + "a");
  EXPECT_EQ(s.last_status, 200);
  s.get("/v1/definitions/a");
  EXPECT_EQ(s.last_status, 404);
  s.get("/v1/definitions/a/versions/1");
  EXPECT_EQ(s.last_status, 404);
  s.post("/v1/instances", R"({"definitionId":"a","definitionVersion":1})");
  EXPECT_EQ(s.last_status, 404);
  EXPECT_EQ(s.get("/v1/definitions").find("total")->as_int64(), 0);
  EXPECT_EQ(s.status(id), "COMPLETED") << "a finished instance can still be read";
  s.call("DELETE", kOps + "a");
  EXPECT_EQ(s.last_status, 404);
  s.upload(kOne);
  EXPECT_EQ(version_of(s, s.start("a")), 2);
  s.verify();
}

TEST(definitions, a_diff_names_what_changed) {
  FaceFixture s;
  s.upload(
      R"({"id":"a","name":"one","steps":[{"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","retryCount":1,"nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  s.upload(
      R"({"id":"a","name":"two","steps":[{"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","retryCount":2,"nextStep":"w"},{"id":"w","name":"w","type":"WAIT","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  json::Value answer = s.get(kOps + "a/diff?from=1&to=2");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(
      json::print(*answer.find("changes")),
      R"([{"path":"/name","from":"one","to":"two"},{"path":"/steps/x/retryCount","from":1,"to":2},{"path":"/steps/x/nextStep","from":"end","to":"w"},{"path":"/steps/w","to":{"id":"w","name":"w","type":"WAIT","nextStep":"end"}}])");
  EXPECT_EQ(json::print(s.get(kOps + "a/diff")), json::print(answer)) << "the last two by default";
  s.get(kOps + "a/diff?from=x");
  EXPECT_EQ(s.last_status, 400);
  s.get(kOps + "a/diff?from=1&to=9");
  EXPECT_EQ(s.last_status, 404);
}

}  // namespace
}  // namespace pawl::processes

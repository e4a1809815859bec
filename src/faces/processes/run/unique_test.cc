// Unique business keys: the policy of a definition.

#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

std::string waiting(const std::string& policy) {
  return definition("a", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd,
                    R"("businessKey":)" + policy + ",");
}
json::Value start(FaceFixture& s, const std::string& key) {
  return s.post("/v1/instances", R"({"definitionId":"a","businessKey":")" + key + "\"}");
}
void end(FaceFixture& s, const std::string& id) {
  s.post("/v1/instances/" + id + "/signals/w", "");
  ASSERT_EQ(s.last_status, 204);
}

TEST(unique, one_running_instance_has_the_key) {
  FaceFixture s;
  s.upload(waiting(R"({"unique":"running"})"));
  std::string first(start(s, "k").string_or("id"));
  EXPECT_EQ(s.last_status, 201);
  json::Value refused = start(s, "k");
  EXPECT_EQ(s.last_status, 409);
  EXPECT_EQ(refused.string_or("error"), "conflict");
  EXPECT_NE(refused.string_or("reason").find(first), std::string::npos);
  start(s, "other");
  EXPECT_EQ(s.last_status, 201);
  start(s, "");
  start(s, "");
  EXPECT_EQ(s.last_status, 201) << "no key is no key";
  s.tenant = "other";
  s.upload(waiting(R"({"unique":"running"})"));
  start(s, "k");
  EXPECT_EQ(s.last_status, 201) << "tenants do not see each other";
  s.tenant = FaceFixture::kTenant;
  end(s, first);
  std::string second(start(s, "k").string_or("id"));
  EXPECT_EQ(s.last_status, 201);
  s.post("/v1/instances/" + second + "/cancel");
  start(s, "k");
  EXPECT_EQ(s.last_status, 201) << "a cancelled instance has ended";
  s.verify();
}

TEST(unique, always_keeps_the_key_after_the_end) {
  FaceFixture s;
  s.upload(waiting(R"({"unique":"always"})"));
  std::string first(start(s, "k").string_or("id"));
  end(s, first);
  start(s, "k");
  EXPECT_EQ(s.last_status, 409);
  s.upload(definition("b", kEnd, R"("businessKey":{"unique":"always"},)"));
  std::string at_once = R"({"definitionId":"b","businessKey":"k"})";
  s.post("/v1/instances", at_once);
  EXPECT_EQ(s.last_status, 201) << "keys belong to their definition";
  s.post("/v1/instances", at_once);
  EXPECT_EQ(s.last_status, 409) << "also when the first ended within its start";
  s.verify();
}

TEST(unique, return_answers_with_the_instance_that_has_the_key) {
  FaceFixture s;
  s.upload(waiting(R"({"unique":"running","conflict":"return"})"));
  json::Value first = start(s, "k");
  EXPECT_FALSE(first.find("existing"));
  json::Value again = start(s, "k");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(again.string_or("id"), first.string_or("id"));
  EXPECT_TRUE(again.find("existing")->boolean());
  json::Value batch = s.post(
      "/pawl/v1/processes/start-batch",
      R"({"items":[{"definitionId":"a","businessKey":"k"},{"definitionId":"a","businessKey":"l"}]})");
  EXPECT_EQ(batch.find("items")->array()[0].find("status")->as_int64(), 200);
  EXPECT_EQ(batch.find("items")->array()[1].find("status")->as_int64(), 201);
  EXPECT_EQ(s.get("/v1/instances").find("total")->as_int64(), 2);
  s.verify();
}

TEST(unique, a_failed_instance_takes_its_key_again_or_is_refused) {
  FaceFixture s;
  s.upload(definition(
      "a", R"({"id":"t","name":"t","type":"SERVICE_TASK","jobType":"j","nextStep":"end"},)" + kEnd,
      R"("businessKey":{"unique":"running"},)"));
  std::string first(start(s, "k").string_or("id"));
  s.post("/v1/jobs/" + s.take("j") + "/fail",
         R"({"workerId":"w","errorMessage":"no","retryable":false})");
  ASSERT_EQ(s.status(first), "FAILED");
  std::string second(start(s, "k").string_or("id"));
  EXPECT_EQ(s.last_status, 201) << "a failed instance does not run";
  s.post("/pawl/v1/processes/instances/" + first + "/retry", R"({"reason":"r"})");
  EXPECT_EQ(s.last_status, 409);
  EXPECT_EQ(s.status(first), "FAILED");
  s.finish("j");
  s.post("/pawl/v1/processes/instances/" + first + "/retry", R"({"reason":"r"})");
  EXPECT_EQ(s.last_status, 200);
  start(s, "k");
  EXPECT_EQ(s.last_status, 409) << "the retried instance has the key";
  s.verify();
}

TEST(unique, a_restart_takes_over_the_key_of_an_instance_that_has_ended) {
  FaceFixture s;
  s.upload(waiting(R"({"unique":"always","conflict":"return"})"));
  std::string first(start(s, "k").string_or("id"));
  s.post("/pawl/v1/processes/instances/" + first + "/restart", R"({"reason":"r"})");
  EXPECT_EQ(s.last_status, 409) << "the first one runs";
  end(s, first);
  json::Value second =
      s.post("/pawl/v1/processes/instances/" + first + "/restart", R"({"reason":"r"})");
  EXPECT_EQ(s.last_status, 201) << json::print(second);
  EXPECT_NE(second.string_or("id"), first);
  EXPECT_EQ(start(s, "k").string_or("id"), second.string_or("id"));
  s.verify();
}

TEST(unique, a_migration_takes_or_releases_the_key) {
  FaceFixture s;
  s.upload(definition("a", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd));
  std::string first(start(s, "k").string_or("id")), second(start(s, "k").string_or("id"));
  s.upload(waiting(R"({"unique":"running"})"));
  auto migrate = [&](const std::string& id, int version) {
    s.post("/pawl/v1/processes/instances/" + id + "/migrate",
           R"({"reason":"r","version":)" + std::to_string(version) + "}");
    return s.last_status;
  };
  EXPECT_EQ(migrate(first, 2), 200);
  EXPECT_EQ(migrate(second, 2), 409) << "the first has the key";
  EXPECT_EQ(migrate(first, 1), 200);
  EXPECT_EQ(migrate(second, 2), 200);
  s.verify();
}

TEST(unique, a_bad_policy_refuses_the_upload) {
  FaceFixture s;
  for (const auto& [policy, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"unique":"never"})", "businessKey.unique must be \"running\" or \"always\""},
           {R"({"conflict":"refuse"})", "businessKey.unique must be"},
           {R"({"unique":"always","conflict":"ask"})", "businessKey.conflict must be"},
           {R"({"unique":"always","once":1})", "unknown field \"once\""},
           {R"("running")", "businessKey must be an object"}}) {
    json::Value answer = s.post("/v1/definitions", waiting(policy));
    EXPECT_EQ(s.last_status, 400);
    EXPECT_NE(answer.string_or("reason").find(words), std::string::npos) << json::print(answer);
  }
}

}  // namespace
}  // namespace pawl::processes

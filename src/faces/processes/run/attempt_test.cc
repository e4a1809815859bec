// attemptTimeout: a worker has a limited time for each attempt of a job.

#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

std::string task(const std::string& more) {
  return definition("a", R"({"id":"t","name":"t","type":"SERVICE_TASK","jobType":"j",)" + more +
                             R"("nextStep":"end"},)" + kEnd);
}
std::string events(FaceFixture& s, const std::string& id) {
  return json::print(s.get("/pawl/v1/processes/instances/" + id + "/events"));
}

TEST(attempt, an_attempt_without_a_result_is_offered_again_under_a_new_id) {
  FaceFixture s;
  s.upload(task(R"("retryCount":1,"attemptTimeout":"PT1M",)"));
  std::string id = s.start("a");
  EXPECT_EQ(s.open_timers(), 0u) << "time begins when a worker takes the job";
  s.pass(3600 * kSecond);
  std::string first = s.take("j");
  EXPECT_EQ(s.open_timers(), 1u);
  EXPECT_NE(events(s, id).find("attempt began at worker"), std::string::npos);
  s.pass(59 * kSecond);
  EXPECT_EQ(s.fired, 0u);
  s.pass(kSecond);
  EXPECT_EQ(s.fired, 1u);
  EXPECT_NE(events(s, id).find("AttemptTimedOut: step \\\"t\\\" had no result within PT1M"),
            std::string::npos)
      << events(s, id);
  EXPECT_EQ(s.complete(first), 204);
  EXPECT_EQ(s.status(id), "ACTIVE") << "a late result of the first attempt changes nothing";
  std::string second = s.take("j");
  ASSERT_FALSE(second.empty());
  EXPECT_NE(second, first);
  s.pass(60 * kSecond);
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("AttemptTimedOut"), std::string::npos);
  EXPECT_EQ(s.open_timers(), 0u);
  s.post("/pawl/v1/processes/instances/" + id + "/retry", R"({"reason":"r"})");
  s.finish("j");
  EXPECT_EQ(s.status(id), "COMPLETED");
  EXPECT_EQ(s.open_timers(), 0u) << "a result withdraws the timer";
  s.verify();
}

TEST(attempt, the_next_worker_after_a_lost_lease_has_the_whole_time) {
  FaceFixture s;
  s.upload(task(R"("attemptTimeout":"PT1M",)"));
  std::string id = s.start("a");
  std::string first = s.take("j");
  s.pass(40 * kSecond);
  EXPECT_EQ(s.take("j"), first) << "the lease of 30 s is over, the attempt is the same";
  s.pass(40 * kSecond);
  EXPECT_EQ(s.status(id), "ACTIVE");
  s.pass(20 * kSecond);
  EXPECT_EQ(s.status(id), "FAILED");
  s.verify();
}

TEST(attempt, a_pause_stops_the_time) {
  FaceFixture s;
  s.upload(task(R"("attemptTimeout":"PT1M",)"));
  std::string id = s.start("a");
  s.take("j");
  s.post("/pawl/v1/processes/instances/" + id + "/pause", R"({"reason":"r"})");
  EXPECT_EQ(s.open_timers(), 0u);
  s.pass(3600 * kSecond);
  s.post("/pawl/v1/processes/instances/" + id + "/resume", R"({"reason":"r"})");
  s.take("j");
  EXPECT_EQ(s.open_timers(), 1u);
  json::Value shown = s.get("/pawl/v1/processes/instances/" + id);
  EXPECT_TRUE(shown.find("tokens")->array()[0].find("attemptEndsAt")) << json::print(shown);
  s.post("/v1/instances/" + id + "/cancel");
  EXPECT_EQ(s.open_timers(), 0u);
  s.verify();
}

TEST(attempt, a_job_under_a_limit_begins_its_time_when_it_is_taken) {
  FaceFixture s;
  s.upload(task(R"("limit":{"concurrent":1},"attemptTimeout":"PT1M","retryCount":1,)"));
  std::string first = s.start("a"), second = s.start("a");
  s.take("j");
  s.pass(60 * kSecond);
  // The slot goes to the second instance, the first one waits for its retry.
  s.finish("j");
  EXPECT_EQ(s.status(second), "COMPLETED");
  s.pass(3600 * kSecond);
  s.finish("j");
  EXPECT_EQ(s.status(first), "COMPLETED");
  s.verify();
}

TEST(attempt, a_bad_timeout_refuses_the_upload) {
  FaceFixture s;
  for (const auto& [document, words] : std::initializer_list<std::pair<std::string, const char*>>{
           {task(R"("attemptTimeout":"soon",)"), "attemptTimeout \"soon\" is not an ISO 8601"},
           {task(R"("attemptTimeout":"PT0S",)"), "attemptTimeout must be longer than nothing"},
           {task(R"("attemptTimeout":5,)"), "attemptTimeout must be a string"},
           {definition("a", R"({"id":"w","name":"w","type":"WAIT","attemptTimeout":"PT1S",)"
                            R"("nextStep":"end"},)" +
                                kEnd),
            "attemptTimeout belongs to a SERVICE_TASK"}}) {
    json::Value answer = s.post("/v1/definitions", document);
    EXPECT_EQ(s.last_status, 400);
    EXPECT_NE(answer.string_or("reason").find(words), std::string::npos) << json::print(answer);
  }
}

}  // namespace
}  // namespace pawl::processes

// Parallel gateways, joins, and timers inside branches.

#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

const std::string kFork =
    R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","b"],"joinStep":"m"},
    {"id":"a","name":"a","type":"SERVICE_TASK","jobType":"a","nextStep":"m"},{"id":"b","name":"b","type":"SERVICE_TASK","jobType":"b","nextStep":"m"},
    {"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)";

TEST(processes, a_join_waits_for_every_branch) {
  FaceFixture s;
  s.upload(definition("a", kFork + kEnd));
  std::string id = s.start("a");
  s.finish("b");
  EXPECT_EQ(s.steps(id), R"(["a","m"])");
  s.finish("a");
  EXPECT_EQ(s.history(id),
            "f:COMPLETED a:COMPLETED b:COMPLETED m:COMPLETED m:COMPLETED end:COMPLETED")
      << "each arrival is an entry";
}

// Each round opens a gateway inside the last one. The instance fails at the limit of tokens, and
// the turn takes time linear in them: it took 90 seconds.
TEST(processes, a_gateway_that_leads_into_itself_fails_fast) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["f","w"],"joinStep":"m"},
    {"id":"w","name":"w","type":"WAIT","nextStep":"m"},{"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a");
  EXPECT_NE(s.reason(id).find("TokenLimitReached"), std::string::npos) << s.reason(id);
  s.verify();
}

// Every arrival looks through all the gateways around it for the one that the join belongs to.
TEST(processes, a_search_through_nested_gateways_counts_as_work) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["f","o"],"joinStep":"m"},
    {"id":"o","name":"o","type":"JOIN_GATEWAY","nextStep":"o2"},{"id":"o2","name":"o2","type":"JOIN_GATEWAY","nextStep":"o"},
    {"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a");
  EXPECT_NE(s.reason(id).find("LimitReached"), std::string::npos) << s.reason(id);
  s.verify();
}

TEST(processes, a_retried_job_keeps_its_first_variables) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","b"],"joinStep":"m"},
    {"id":"a","name":"a","type":"SERVICE_TASK","jobType":"a","retryCount":2,"nextStep":"m"},{"id":"b","name":"b","type":"SERVICE_TASK","jobType":"b","nextStep":"m"},
    {"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a", R"({"v":1})"), job = s.take("a");
  s.finish("b", R"({"v":2})");
  s.post("/v1/jobs/" + job + "/fail", R"({"workerId":"w","errorMessage":"boom","retryable":true})");
  json::Value again = s.post("/v1/jobs/poll", R"({"workerId":"w","jobTypes":["a"]})");
  const json::Value& offered = again.find("jobs")->array()[0];
  EXPECT_NE(offered.string_or("id"), job);
  EXPECT_EQ(json::print(*offered.find("variables")), R"({"v":1})");
  s.complete(std::string(offered.string_or("id")), R"({"w":3})");
  EXPECT_EQ(s.variables(id), R"({"v":2,"w":3})");
  s.verify();
}

TEST(processes, a_shared_join_waits_for_both_gateways) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","g"],"joinStep":"m"},{"id":"a","name":"a","type":"SERVICE_TASK","jobType":"a","nextStep":"m"},
    {"id":"g","name":"g","type":"PARALLEL_GATEWAY","parallelNextSteps":["b","c"],"joinStep":"m"},{"id":"b","name":"b","type":"SERVICE_TASK","jobType":"b","nextStep":"m"},
    {"id":"c","name":"c","type":"SERVICE_TASK","jobType":"c","nextStep":"m"},{"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"z"},
    {"id":"z","name":"z","type":"SERVICE_TASK","jobType":"z","nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a");
  s.finish("b");
  s.finish("c");
  EXPECT_EQ(s.steps(id), R"(["a","m"])") << "the outer gateway still waits for its other branch";
  s.finish("a");
  EXPECT_EQ(s.steps(id), R"(["z"])");
  s.finish("z");
  EXPECT_EQ(s.status(id), "COMPLETED");
}

TEST(processes, a_non_interrupting_timer_does_not_arrive_for_its_branch) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["u","b"],"joinStep":"m"},
    {"id":"u","name":"u","type":"USER_TASK","nextStep":"m","boundaryEvents":[{"type":"TIMER","duration":"PT1S","interrupting":false,"targetStepId":"m"}]},
    {"id":"b","name":"b","type":"WAIT","nextStep":"m"},{"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"after"},
    {"id":"after","name":"a","type":"SERVICE_TASK","jobType":"after","nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a");
  s.pass(kSecond);
  EXPECT_EQ(s.steps(id), R"(["u","b"])");
  s.post("/v1/instances/" + id + "/signals/b", "");
  EXPECT_EQ(s.steps(id), R"(["u","m"])") << "u is still open";
  s.post("/v1/instances/" + id + "/user-tasks/u/complete", "");
  EXPECT_EQ(s.steps(id), R"(["after"])");
  s.finish("after");
  EXPECT_TRUE(s.take("after").empty());
  EXPECT_EQ(s.status(id), "COMPLETED");
  s.verify();
}

TEST(processes, a_non_interrupting_timer_may_start_its_own_gateway) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["u","b"],"joinStep":"m"},
    {"id":"u","name":"u","type":"USER_TASK","nextStep":"m","boundaryEvents":[{"type":"TIMER","duration":"PT1S","interrupting":false,"targetStepId":"g"}]},
    {"id":"g","name":"g","type":"PARALLEL_GATEWAY","parallelNextSteps":["x","y"],"joinStep":"n"},{"id":"x","name":"x","type":"WAIT","nextStep":"n"},
    {"id":"y","name":"y","type":"WAIT","nextStep":"m"},{"id":"n","name":"n","type":"JOIN_GATEWAY","nextStep":"m"},
    {"id":"b","name":"b","type":"WAIT","nextStep":"m"},{"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a");
  s.pass(kSecond);
  for (const char* step : {"b", "x", "y"})
    s.post("/v1/instances/" + id + "/signals/" + step, "");
  EXPECT_EQ(s.steps(id), R"(["u","m","n"])")
      << "y went to the outer join from inside the inner gateway: that is not u either";
  s.post("/v1/instances/" + id + "/user-tasks/u/complete", "");
  EXPECT_EQ(s.status(id), "COMPLETED");
  s.verify();
}

TEST(processes, gateways_may_be_nested) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["g","c"],"joinStep":"m"},
    {"id":"g","name":"g","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","b"],"joinStep":"n"},
    {"id":"a","name":"a","type":"WAIT","nextStep":"n"},{"id":"b","name":"b","type":"WAIT","nextStep":"n"},{"id":"c","name":"c","type":"WAIT","nextStep":"m"},
    {"id":"n","name":"n","type":"JOIN_GATEWAY","nextStep":"m"},{"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a");
  for (const char* step : {"a", "c"})
    s.post("/v1/instances/" + id + "/signals/" + step, "");
  EXPECT_EQ(s.status(id), "WAITING");
  s.post("/v1/instances/" + id + "/signals/b", "");
  EXPECT_EQ(s.status(id), "COMPLETED");
}

TEST(processes, end_withdraws_open_jobs_and_timers) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","b"],"joinStep":"m"},
    {"id":"a","name":"a","type":"SERVICE_TASK","jobType":"a","nextStep":"m"},{"id":"b","name":"b","type":"USER_TASK","nextStep":"end","boundaryEvents":[{"type":"TIMER","duration":"P7D","interrupting":true,"targetStepId":"end"}]},
    {"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a");
  s.post("/v1/instances/" + id + "/user-tasks/b/complete", "");
  EXPECT_EQ(s.status(id), "COMPLETED");
  EXPECT_EQ(s.steps(id), "[]");
  EXPECT_EQ(s.open_jobs() + s.open_timers(), 0u);
}

}  // namespace
}  // namespace pawl::processes

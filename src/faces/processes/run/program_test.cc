// The behaviour of instances, step type by step type.

#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

TEST(processes, a_service_task_is_polled_and_completed) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"end"},)" + kEnd));
  std::string id = s.start("a", R"({"o":{"k":1}})");
  EXPECT_EQ(s.status(id), "ACTIVE");
  std::string job = s.take("j");
  EXPECT_TRUE(s.take("j").empty()) << "a leased job is not handed out twice";
  EXPECT_EQ(s.complete(job, R"({"o":{"l":2}})"), 204);
  EXPECT_EQ(s.status(id), "COMPLETED");
  EXPECT_EQ(s.variables(id), R"({"o":{"k":1,"l":2}})") << "a worker's result is merged deeply";
  EXPECT_EQ(s.history(id), "x:COMPLETED end:COMPLETED");
  EXPECT_EQ(s.complete(job, R"({"late":1})"), 204)
      << "completing twice is accepted and does nothing";
  EXPECT_EQ(s.variables(id), R"({"o":{"k":1,"l":2}})");
  s.verify();
}

TEST(processes, an_unknown_job_is_not_found) {
  FaceFixture s;
  for (const char* id : {"nope", "01M7FSS5AZ5GMKAMCPFXEZ0001", "01M7FSS5AZ5GMKAMCPFXEZ0000"})
    EXPECT_EQ(s.complete(id), 404) << id;
}

TEST(processes, an_execution_id_is_not_a_job_id) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"end"},)" + kEnd));
  std::string id = s.start("a");
  json::Value history = s.get("/v1/instances/" + id + "/history");
  std::string execution(history.find("items")->array()[0].string_or("ID"));
  EXPECT_EQ(s.complete(execution), 404);
  EXPECT_EQ(s.status(id), "ACTIVE");
  s.finish("j");
  EXPECT_EQ(s.status(id), "COMPLETED");
}

TEST(processes, a_sum_that_overflows_fails_the_table) {
  FaceFixture s;
  s.upload(definition(
      "t",
      R"({"id":"x","name":"x","type":"DECISION_TABLE","hitPolicy":"C+","nextStep":"end","decisionTable":{"rules":[{"outputs":{"o":1e308}},{"outputs":{"o":1e308}}]}},)" +
          kEnd));
  std::string id = s.start("t");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("DecisionTableAggregatorTypeError"), std::string::npos)
      << s.reason(id);
}

TEST(processes, a_retry_waits_for_its_backoff) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","retryCount":3,"retryBackoff":{"initial":"PT1S","multiplier":2,"max":"PT3S"},"nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a");
  Time waits[] = {1, 2, 3};
  std::set<std::string> ids;
  for (Time wait : waits) {
    std::string job = s.take("j");
    ASSERT_FALSE(job.empty());
    EXPECT_TRUE(ids.insert(job).second) << "each attempt has a job id of its own";
    s.post("/v1/jobs/" + job + "/fail",
           R"({"workerId":"w","errorMessage":"boom","retryable":true})");
    s.pass(wait * kSecond - 1);
    EXPECT_TRUE(s.take("j").empty()) << wait;
    s.pass(1);
  }
  s.post("/v1/jobs/" + s.take("j") + "/fail",
         R"({"workerId":"w","errorMessage":"boom","retryable":true})");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_EQ(s.reason(id), "boom");
}

// The definition "a" with one job of the type "j" and two retries.
void upload_retried_task(FaceFixture& s) {
  s.upload(definition(
      "a",
      R"({"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","retryCount":2,"nextStep":"end"},)" +
          kEnd));
}

TEST(processes, a_repeated_result_of_an_earlier_attempt_changes_nothing) {
  FaceFixture s;
  upload_retried_task(s);
  std::string id = s.start("a"), first = s.take("j");
  const std::string failure = R"({"workerId":"w","errorMessage":"boom","retryable":true})";
  for (int i = 0; i < 3; ++i) {
    s.post("/v1/jobs/" + first + "/fail", failure);
    EXPECT_EQ(s.last_status, 204);
  }
  EXPECT_EQ(s.status(id), "ACTIVE");
  json::Value polled = s.post("/v1/jobs/poll", R"({"workerId":"v","jobTypes":["j"]})");
  const json::Value& second = polled.find("jobs")->array()[0];
  EXPECT_EQ(second.find("retriesRemaining")->as_int64(), 1) << "one failure costs one retry";
  EXPECT_EQ(s.complete(first, R"({"late":1})"), 204);
  s.post("/v1/jobs/" + first + "/fail", R"({"workerId":"w","errorMessage":"b","retryable":false})");
  EXPECT_EQ(s.status(id), "ACTIVE");
  EXPECT_EQ(s.variables(id), "{}");
  EXPECT_EQ(s.complete(std::string(second.string_or("id"))), 204);
  EXPECT_EQ(s.status(id), "COMPLETED");
  s.verify();
}

// A frame of an earlier version: the next attempt keeps the id of the job.
TEST(processes, a_failure_of_an_earlier_version_replays_as_it_was) {
  FaceFixture s;
  upload_retried_task(s);
  std::string id = s.start("a"), first = s.take("j");
  Bytes old = encode(FailCommand{first, "w", "boom", true});  // without `fenced`
  Input input;
  input.program = kProgram;
  input.verb = verb::fail;
  input.body = old;
  input.caller.tenant = FaceFixture::kTenant;
  bool answered = false;
  s.submit(std::move(input), [&](Result<Answer> answer) { answered = answer.has_value(); });
  EXPECT_TRUE(answered);
  EXPECT_EQ(s.take("j"), first);
  s.verify();
}

TEST(processes, strict_leases_refuse_a_worker_that_does_not_hold_the_job) {
  FaceFixture s;
  s.options.strict_leases = true;
  s.upload(definition(
      "a",
      R"({"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"end"},)" + kEnd));
  std::string id = s.start("a"), job = s.take("j");
  auto as = [&](const std::string& worker) {
    s.post("/v1/jobs/" + job + "/complete", R"({"workerId":")" + worker + "\"}");
    return s.last_status;
  };
  EXPECT_EQ(as("other"), 409);
  s.post("/v1/jobs/" + job + "/fail", R"({"workerId":"other","errorMessage":"e"})");
  EXPECT_EQ(s.last_status, 409);
  EXPECT_EQ(s.status(id), "ACTIVE");
  s.pass(31 * kSecond);
  EXPECT_EQ(as("w"), 409) << "the lease has ended";
  EXPECT_EQ(s.take("j"), job);
  EXPECT_EQ(as("w"), 204);
  EXPECT_EQ(as("other"), 204) << "a repeat changes nothing";
  EXPECT_EQ(s.status(id), "COMPLETED");
}

TEST(processes, a_heartbeat_extends_the_lease_of_its_worker_only) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"end"},)" + kEnd));
  std::string id = s.start("a"), job = s.take("j");
  auto beat = [&](const std::string& worker, const std::string& more = "") {
    return s.post("/v1/jobs/" + job + "/heartbeat",
                  R"({"workerId":")" + worker + "\"" + more + "}");
  };
  s.pass(20 * kSecond);
  json::Value answer = beat("w");
  EXPECT_EQ(s.last_status, 200) << json::print(answer);
  EXPECT_TRUE(answer.find("accepted")->boolean());
  EXPECT_EQ(*parse_rfc3339(answer.string_or("lockExpiresAt")), s.time + 30 * kSecond);
  beat("other");
  EXPECT_EQ(s.last_status, 409);
  beat("");
  EXPECT_EQ(s.last_status, 400);
  s.pass(20 * kSecond);
  EXPECT_TRUE(s.take("j").empty()) << "the lease was extended";
  answer = beat("w", R"(,"leaseSeconds":100)");
  EXPECT_EQ(*parse_rfc3339(answer.string_or("lockExpiresAt")), s.time + 100 * kSecond);
  answer = beat("w", R"(,"leaseSeconds":1)");
  EXPECT_EQ(*parse_rfc3339(answer.string_or("lockExpiresAt")), s.time + 100 * kSecond)
      << "a heartbeat never shortens a lease";
  EXPECT_EQ(s.complete(job), 204);
  beat("w");
  EXPECT_EQ(s.last_status, 409) << "the job has ended";
  s.post("/v1/jobs/01M7FSS5AZ5GMKAMCPFXEZ0001/heartbeat", R"({"workerId":"w"})");
  EXPECT_EQ(s.last_status, 404);
}

TEST(processes, a_timer_fires_once_while_its_step_is_active) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"w","name":"w","type":"WAIT","nextStep":"end","boundaryEvents":[{"type":"TIMER","duration":"PT10S","interrupting":false,"targetStepId":"r"}]},
    {"id":"r","name":"r","type":"SERVICE_TASK","jobType":"remind"},)" +
          kEnd));
  std::string id = s.start("a");
  s.pass(10 * kSecond - 1);
  EXPECT_TRUE(s.take("remind").empty()) << "never early";
  s.pass(1);
  EXPECT_FALSE(s.take("remind").empty());
  EXPECT_EQ(s.open_timers(), 0u);
  std::string other = s.start("a");
  s.post("/v1/instances/" + other + "/signals/w", "");
  EXPECT_EQ(s.last_status, 204);
  EXPECT_EQ(s.open_timers(), 0u) << "a finished step has no timers";
  EXPECT_EQ(s.open_jobs(), 1u);
}

TEST(processes, an_interrupting_timer_ends_its_step) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"end","boundaryEvents":[{"type":"TIMER","duration":"PT1S","interrupting":true,"targetStepId":"late"}]},
    {"id":"late","name":"l","type":"END"},)" +
          kEnd));
  std::string id = s.start("a"), job = s.take("j");
  s.pass(kSecond);
  EXPECT_EQ(s.history(id), "x:FAILED late:COMPLETED");
  EXPECT_EQ(s.complete(job, R"({"v":1})"), 204);
  EXPECT_EQ(s.variables(id), "{}");
  EXPECT_EQ(s.open_jobs() + s.open_timers(), 0u);
}

// A non-interrupting timer starts a token beside the branch. The branch itself has not arrived.
TEST(processes, an_unknown_step_is_not_found_in_a_finished_instance) {
  FaceFixture s;
  s.upload(definition("a", R"({"id":"u","name":"u","type":"USER_TASK","nextStep":"end"},)" + kEnd));
  std::string id = s.start("a");
  s.post("/v1/instances/" + id + "/user-tasks/u/complete", "");
  s.post("/v1/instances/" + id + "/user-tasks/u/complete", "");
  EXPECT_EQ(s.last_status, 409);
  s.post("/v1/instances/" + id + "/user-tasks/nowhere/complete", "");
  EXPECT_EQ(s.last_status, 404);
  s.post("/v1/instances/" + id + "/signals/nowhere", "");
  EXPECT_EQ(s.last_status, 409);
}

TEST(processes, very_long_timers_survive_a_pause) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"w","name":"w","type":"WAIT","nextStep":"end","boundaryEvents":[{"type":"TIMER","duration":"P9999Y","interrupting":true,"targetStepId":"end"}]},)" +
          kEnd));
  std::string id = s.start("a");
  s.post("/pawl/v1/processes/instances/" + id + "/pause");
  s.pass(3600 * kSecond);
  s.post("/pawl/v1/processes/instances/" + id + "/resume");
  EXPECT_EQ(s.open_timers(), 1u);
  EXPECT_EQ(s.status(id), "WAITING");
}

TEST(processes, wrong_requests_change_nothing) {
  FaceFixture s;
  s.upload(definition("a", R"({"id":"u","name":"u","type":"USER_TASK","nextStep":"end"},)" + kEnd));
  std::string id = s.start("a");
  Seq before = s.durable();
  struct Case {
    std::string path, body;
    int status;
  };
  const Case cases[] = {
      {"/v1/instances/" + id + "/signals/u", "", 400},
      {"/v1/instances/" + id + "/signals/nope", "", 409},
      {"/v1/instances/" + id + "/user-tasks/end/complete", "", 400},
      {"/v1/instances/" + id + "/user-tasks/nope/complete", "", 404},
      {"/v1/instances/" + id + "/user-tasks/u/complete", "[1]", 400},
      {"/v1/instances/" + id + "/user-tasks/u/complete", R"({"variables":3})", 400},
      {"/v1/instances/nope/cancel", "", 404},
      {"/v1/instances", R"({"definitionId":"zz"})", 404},
      {"/v1/instances", std::string(300, '['), 400},
      {"/v1/jobs/poll", "{}", 400},
      {"/pawl/v1/processes/instances/" + id + "/retry", "", 409},
      {"/pawl/v1/processes/instances/" + id + "/dance", "", 404},
      {"/pawl/v1/processes/bulk/retry", "{}", 400},
      {"/pawl/v1/processes/start-batch", R"({"items":[]})", 400},
  };
  for (const Case& c : cases) {
    json::Value answer = s.post(c.path, c.body);
    EXPECT_EQ(s.last_status, c.status) << c.path << " " << json::print(answer);
    EXPECT_TRUE(answer.find("error") && answer.find("reason")) << c.path;
  }
  EXPECT_EQ(s.durable(), before);
  EXPECT_EQ(s.status(id), "WAITING");
}

TEST(processes, a_null_table_cell_is_blank) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"t","name":"t","type":"DECISION_TABLE","nextStep":"end","decisionTable":{"rules":[{"when":{"c":null},"outputs":{"hit":true}}]}},)" +
          kEnd));
  EXPECT_EQ(s.variables(s.start("a")), R"({"hit":true})");
}

TEST(processes, branches_of_a_task_or_wait_precede_its_next_step) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"end","conditionalNextSteps":{"n == 1":"u","n == 2":"w"}},
    {"id":"u","name":"u","type":"USER_TASK","conditionalNextSteps":{"true":"w"}},{"id":"w","name":"w","type":"WAIT","nextStep":"end","conditionalNextSteps":{"n > 5":"x","n > 0":"end"}},)" +
          kEnd));
  std::string id = s.start("a");
  s.finish("j", R"({"n":1})");
  s.post("/v1/instances/" + id + "/user-tasks/u/complete", "");
  s.post("/v1/instances/" + id + "/signals/w", "");
  EXPECT_EQ(s.history(id), "x:COMPLETED u:COMPLETED w:COMPLETED end:COMPLETED");
  id = s.start("a");
  s.finish("j", R"({"n":3})");
  EXPECT_EQ(s.status(id), "FAILED") << "no branch is true";
  EXPECT_NE(s.get("/v1/instances/" + id).string_or("failureReason").find("DecisionNoBranchMatched"),
            std::string_view::npos);
  EXPECT_EQ(s.history(id), "x:FAILED");
  s.verify();
}

// A slice cuts bytes. An incomplete character becomes U+FFFD, so that the stored value can be read.
TEST(processes, a_value_cut_inside_a_character_stays_valid_utf8) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"t","name":"t","type":"TRANSFORMATION","transformations":{"r":"${name[0:1]}"},"nextStep":"end"},)" +
          kEnd));
  EXPECT_EQ(s.variables(s.start("a", R"({"name":"\u00e9"})")),
            "{\"name\":\"\xC3\xA9\",\"r\":\"\xEF\xBF\xBD\"}");
  s.verify();
}

}  // namespace
}  // namespace pawl::processes

// What instances do, step type by step type.

#include "faces/processes/limits.h"
#include "faces/processes/stage_test.h"

namespace pawl::processes {
namespace {

std::string definition(const std::string& id, const std::string& steps,
                       const std::string& more = "") {
  return R"({"id":")" + id + R"(","name":"n",)" + more + R"("steps":[)" + steps + "]}";
}
const std::string kEnd = R"({"id":"end","name":"e","type":"END"})";

TEST(processes, a_service_task_is_polled_and_completed) {
  Stage s;
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
  Stage s;
  for (const char* id : {"nope", "01M7FSS5AZ5GMKAMCPFXEZ0001", "01M7FSS5AZ5GMKAMCPFXEZ0000"})
    EXPECT_EQ(s.complete(id), 404) << id;
}

TEST(processes, the_id_of_a_running_execution_is_no_job) {
  Stage s;
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

TEST(processes, a_table_takes_no_retries_not_even_negative_ones) {
  Stage s;
  for (const char* count : {"1", "-1"}) {
    s.post(
        "/v1/definitions",
        definition(
            "t", R"({"id":"x","name":"x","type":"DECISION_TABLE","nextStep":"end","retryCount":)" +
                     std::string(count) + R"(,"decisionTable":{"rules":[{"outputs":{"a":1}}]}},)" +
                     kEnd));
    EXPECT_EQ(s.last_status, 400) << count;
  }
}

TEST(processes, a_sum_that_no_number_holds_fails_the_table) {
  Stage s;
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
  Stage s;
  s.upload(definition(
      "a",
      R"({"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","retryCount":3,"retryBackoff":{"initial":"PT1S","multiplier":2,"max":"PT3S"},"nextStep":"end"},)" +
          kEnd));
  std::string id = s.start("a");
  Time waits[] = {1, 2, 3};
  std::string first;
  for (Time wait : waits) {
    std::string job = s.take("j");
    ASSERT_FALSE(job.empty());
    if (first.empty()) first = job;
    EXPECT_EQ(job, first) << "a retry keeps the job's id";
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

TEST(processes, a_timer_fires_once_and_only_while_its_step_is_active) {
  Stage s;
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

TEST(processes, an_interrupting_timer_takes_the_step_away) {
  Stage s;
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

const std::string kFork =
    R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","b"],"joinStep":"m"},
    {"id":"a","name":"a","type":"SERVICE_TASK","jobType":"a","nextStep":"m"},{"id":"b","name":"b","type":"SERVICE_TASK","jobType":"b","nextStep":"m"},
    {"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)";

TEST(processes, a_join_waits_for_every_branch) {
  Stage s;
  s.upload(definition("a", kFork + kEnd));
  std::string id = s.start("a");
  s.finish("b");
  EXPECT_EQ(s.steps(id), R"(["a","m"])");
  s.finish("a");
  EXPECT_EQ(s.history(id),
            "f:COMPLETED a:COMPLETED b:COMPLETED m:COMPLETED m:COMPLETED end:COMPLETED")
      << "each arrival is an entry";
}

TEST(processes, a_retried_job_keeps_the_variables_it_was_made_with) {
  Stage s;
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
  EXPECT_EQ(offered.string_or("id"), job);
  EXPECT_EQ(json::print(*offered.find("variables")), R"({"v":1})");
  s.complete(job, R"({"w":3})");
  EXPECT_EQ(s.variables(id), R"({"v":2,"w":3})");
  s.verify();
}

TEST(processes, a_join_of_two_gateways_waits_for_the_branches_of_both) {
  Stage s;
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

// A timer that does not interrupt starts something beside the branch; the branch itself is under
// way.
TEST(processes, what_a_timer_started_beside_a_branch_does_not_arrive_for_it) {
  Stage s;
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

TEST(processes, what_a_timer_started_beside_a_branch_may_fork_and_join_itself) {
  Stage s;
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

TEST(processes, a_step_that_is_not_there_is_not_found_in_a_finished_instance_either) {
  Stage s;
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
  Stage s;
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

TEST(processes, gateways_may_be_nested) {
  Stage s;
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

TEST(processes, end_withdraws_everything_that_is_open) {
  Stage s;
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

TEST(processes, chaining_starts_the_next_workflow_in_the_same_frame) {
  Stage s;
  s.upload(definition("b", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd));
  s.upload(definition(
      "a",
      R"({"id":"t","name":"t","type":"TRANSFORMATION","transformations":{"x":1},"nextStep":"end"},)" +
          kEnd,
      R"("autoStartNextWorkflow":true,"nextWorkflowId":"b",)"));
  Seq before = s.durable();
  std::string id = s.start("a");
  EXPECT_EQ(s.durable(), before + 1);
  std::string next(s.get("/v1/instances/" + id).string_or("nextInstanceId"));
  EXPECT_EQ(s.get("/v1/instances/" + next).string_or("previousInstanceId"), id);
  EXPECT_EQ(s.variables(next), R"({"x":1})");
  s.verify();
}

TEST(processes, a_chain_longer_than_a_turn_goes_on_in_the_next) {
  Stage s;
  for (int i = 0; i < 130; ++i)
    s.upload(definition("c" + std::to_string(i), kEnd,
                        i == 129 ? ""
                                 : R"("autoStartNextWorkflow":true,"nextWorkflowId":"c)" +
                                       std::to_string(i + 1) + R"(",)"));
  std::string id = s.start("c0", R"({"x":7})"), before;
  for (int i = 0; i < 130; ++i) {
    json::Value one = s.get("/v1/instances/" + id);
    ASSERT_EQ(one.string_or("definitionId"), "c" + std::to_string(i));
    EXPECT_EQ(one.string_or("status"), "COMPLETED");
    EXPECT_EQ(one.string_or("previousInstanceId"), before);
    EXPECT_EQ(s.variables(id), R"({"x":7})");
    before = id;
    id = std::string(one.string_or("nextInstanceId"));
  }
  EXPECT_EQ(id, "");
  s.verify();
}

TEST(processes, a_cycle_of_workflows_without_a_wait_fails_at_the_named_limit) {
  Stage s;
  s.upload(definition("a", kEnd, R"("autoStartNextWorkflow":true,"nextWorkflowId":"a",)"));
  s.start("a");
  EXPECT_EQ(s.get("/v1/instances?status=COMPLETED").find("total")->as_int64(),
            static_cast<int64_t>(kChainInARow) + 1);
  json::Value failed = s.get("/v1/instances?status=FAILED");
  ASSERT_EQ(failed.find("total")->as_int64(), 1);
  EXPECT_NE(failed.find("items")->array()[0].string_or("failureReason").find("ChainLimitReached"),
            std::string::npos);
}

TEST(processes, a_chain_waits_for_a_workflow_that_is_uploaded_later) {
  Stage s;
  s.upload(definition("a", kEnd, R"("autoStartNextWorkflow":true,"nextWorkflowId":"later",)"));
  std::string first = s.start("a", R"({"n":1})"), second = s.start("a", R"({"n":2})");
  EXPECT_EQ(s.get("/v1/instances/" + first).string_or("nextInstanceId"), "");
  s.upload(definition("later", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd));
  for (const auto& [id, variables] :
       {std::pair(first, R"({"n":1})"), std::pair(second, R"({"n":2})")}) {
    std::string next(s.get("/v1/instances/" + id).string_or("nextInstanceId"));
    ASSERT_FALSE(next.empty());
    EXPECT_EQ(s.variables(next), variables);
    EXPECT_EQ(s.status(next), "WAITING");
  }
  s.upload(definition("later", kEnd));
  EXPECT_EQ(s.get("/v1/instances?definitionId=later").find("total")->as_int64(), 2)
      << "a second version starts nothing";
  s.verify();
}

TEST(processes, a_loop_without_a_wait_fails_at_the_named_limit) {
  Stage s;
  s.upload(definition(
      "a",
      R"({"id":"t","name":"t","type":"TRANSFORMATION","transformations":{"x":1},"nextStep":"d"},{"id":"d","name":"d","type":"DECISION","conditionalNextSteps":{"x == 1":"t","x == 2":"end"}},)" +
          kEnd));
  std::string id = s.start("a");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("StepLimitReached"), std::string::npos) << s.reason(id);
  EXPECT_EQ(s.status(s.start("a", R"({"y":1})")), "FAILED") << "the server goes on";
}

TEST(processes, what_expressions_make_is_limited) {
  Stage s;
  const char* hostile[] = {"${ {a: x} }", "${ [x, x] }", "${ repeat('x', 1000000) + string(x) }",
                           "${ len(filter(1..50000, # > 0)) }"};
  int n = 0;
  for (const char* value : hostile) {
    std::string id = "h" + std::to_string(n++);
    s.upload(definition(
        id,
        R"({"id":"t","name":"t","type":"TRANSFORMATION","transformations":{"x":")" +
            std::string(value) +
            R"("},"nextStep":"d"},{"id":"d","name":"d","type":"DECISION","conditionalNextSteps":{"go":"t","!go":"end"}},)" +
            kEnd));
    std::string instance = s.start(id, R"({"x":0,"go":true})");
    EXPECT_EQ(s.status(instance), "FAILED") << value;
    EXPECT_FALSE(s.reason(instance).empty());
  }
  s.verify();
}

TEST(processes, ten_thousand_steps_run_and_one_more_is_refused) {
  Stage s;
  std::string steps;
  for (int i = 0; i < 9'999; ++i)
    steps += R"({"id":"s)" + std::to_string(i) +
             R"(","name":"s","type":"TRANSFORMATION","transformations":{"x":)" + std::to_string(i) +
             R"(},"nextStep":")" + (i == 9'998 ? "end" : "s" + std::to_string(i + 1)) + "\"},";
  s.upload(definition("a", steps + kEnd));
  std::string id = s.start("a");
  EXPECT_EQ(s.status(id), "COMPLETED");
  EXPECT_EQ(s.variables(id), R"({"x":9998})");
  json::Value answer =
      s.post("/v1/definitions",
             definition("b", steps + R"({"id":"more","name":"m","type":"END"},)" + kEnd));
  EXPECT_EQ(s.last_status, 400);
}

TEST(processes, a_thousand_branches_meet_at_their_join) {
  Stage s;
  std::string steps, names;
  for (int i = 0; i < 1'000; ++i) {
    std::string id = "b" + std::to_string(i);
    names += (i ? ",\"" : "\"") + id + "\"";
    steps +=
        R"({"id":")" + id + R"(","name":"b","type":"SERVICE_TASK","jobType":"j","nextStep":"m"},)";
  }
  s.upload(definition(
      "a",
      R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","joinStep":"m","parallelNextSteps":[)" +
          names + "]}," + steps +
          R"({"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" + kEnd));
  std::string id = s.start("a");
  for (int i = 0; i < 1'000; ++i)
    s.finish("j");
  EXPECT_EQ(s.status(id), "COMPLETED");
}

TEST(processes, wrong_requests_change_nothing) {
  Stage s;
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

TEST(processes, all_problems_come_in_one_answer) {
  Stage s;
  json::Value answer = s.post(
      "/v1/definitions",
      R"({"id":"a b","steps":[{"id":"x","type":"NOPE","nextStep":"ghost"},{"id":"x","name":"x","type":"WAIT"},{"id":"lost","name":"l","type":"SERVICE_TASK"}]})");
  EXPECT_EQ(s.last_status, 400);
  std::string reason(answer.string_or("reason"));
  for (const char* part :
       {"a b", "name is required", "step \"x\": name is required", "unsupported type \"NOPE\"",
        "duplicate step id \"x\"", "nextStep is required", "jobType is required",
        "step \"x\" nextStep references unknown step \"ghost\"", "step \"lost\" is unreachable",
        "no END step is reachable"})
    EXPECT_NE(reason.find(part), std::string::npos) << part << " in " << reason;
}

TEST(processes, a_branch_that_can_miss_its_join_is_warned_about) {
  Stage s;
  json::Value answer = s.post(
      "/v1/definitions",
      definition(
          "a",
          R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","b"],"joinStep":"m"},
    {"id":"a","name":"a","type":"DECISION","conditionalNextSteps":{"x > ":"m","x":"end"}},{"id":"b","name":"b","type":"WAIT","nextStep":"m"},{"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
              kEnd));
  EXPECT_EQ(s.last_status, 201);
  ASSERT_TRUE(answer.find("warnings"));
  EXPECT_EQ(answer.find("warnings")->array().size(), 2u) << json::print(answer);
}

TEST(processes, member_order_and_branch_order_make_a_version_or_not) {
  Stage s;
  auto branches = [&](const char* map) {
    return definition(
        "a", std::string(R"({"id":"d","name":"d","type":"DECISION","conditionalNextSteps":)") +
                 map + "}," + kEnd);
  };
  s.upload(branches(R"({"a":"end","b":"end"})"));
  json::Value again = s.post(
      "/v1/definitions",
      R"({"name":"n","id":"a","metadata":{},"steps":[{"name":"d","id":"d","type":"DECISION","conditionalNextSteps":{"a":"end","b":"end"}},)" +
          kEnd + "]}");
  EXPECT_EQ(again.find("version")->as_int64(), 1);
  json::Value turned = s.post("/v1/definitions", branches(R"({"b":"end","a":"end"})"));
  EXPECT_EQ(turned.find("version")->as_int64(), 2);
}

TEST(processes, a_malformed_duration_is_listed_with_every_other_problem) {
  Stage s;
  json::Value answer = s.post(
      "/v1/definitions",
      definition(
          "a b",
          R"({"id":"w","name":"","type":"WAIT","nextStep":"end","boundaryEvents":[{"type":"MESSAGE","duration":"1h","targetStepId":"nowhere"}]},)" +
              kEnd));
  EXPECT_EQ(s.last_status, 400);
  for (const char* part :
       {"validation error", "id \"a b\" must match", "name is required", "unsupported type",
        "\"1h\" is not an ISO 8601 duration", "unknown step \"nowhere\""})
    EXPECT_NE(answer.string_or("reason").find(part), std::string_view::npos)
        << part << " in " << answer.string_or("reason");
}

TEST(processes, a_field_that_was_removed_does_not_hide_the_other_problems) {
  Stage s;
  json::Value answer = s.post(
      "/v1/definitions",
      definition(
          "a b",
          R"({"id":"t","name":"","type":"DECISION_TABLE","hitPolicy":"X","decisionTable":{"defaultNextStep":"end","rules":[{"then":"end"}]}},
    {"id":"w","name":"w","type":"WAIT","nextStep":"ghost"},)" +
              kEnd));
  EXPECT_EQ(s.last_status, 400);
  for (const char* part :
       {"parse error", "defaultNextStep was removed", "rules[0].then was removed",
        "id \"a b\" must match", "step \"t\": name is required", "hitPolicy",
        "unknown step \"ghost\"", "step \"w\" is unreachable"})
    EXPECT_NE(answer.string_or("reason").find(part), std::string_view::npos)
        << part << " in " << answer.string_or("reason");
}

TEST(processes, a_timer_beyond_the_end_of_time_is_warned_about) {
  Stage s;
  for (auto [duration, warned] : {std::pair("P9999Y", true), {"P100Y", false}}) {
    json::Value answer = s.post(
        "/v1/definitions",
        definition(
            "a",
            R"({"id":"w","name":"w","type":"WAIT","nextStep":"end","boundaryEvents":[{"type":"TIMER","duration":")" +
                std::string(duration) + R"(","interrupting":true,"targetStepId":"end"}]},)" +
                kEnd));
    EXPECT_EQ(s.last_status, 201);
    EXPECT_EQ(answer.find("warnings") != nullptr, warned) << json::print(answer);
  }
}

TEST(processes, a_branch_that_a_timer_can_lead_away_is_named) {
  Stage s;
  auto warned = [&](const char* interrupting) {
    json::Value answer = s.post(
        "/v1/definitions",
        definition(
            "a",
            R"({"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["u","b"],"joinStep":"m"},
      {"id":"u","name":"u","type":"USER_TASK","nextStep":"m","boundaryEvents":[{"type":"TIMER","duration":"PT1S","interrupting":)" +
                std::string(interrupting) + R"(,"targetStepId":"end"}]},
      {"id":"b","name":"b","type":"WAIT","nextStep":"m"},{"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
                kEnd));
    EXPECT_EQ(s.last_status, 201);
    return answer.find("warnings") != nullptr;
  };
  EXPECT_TRUE(warned("true"));
  EXPECT_FALSE(warned("false")) << "the task goes on beside its timer";
}

TEST(processes, a_cell_that_is_null_is_blank) {
  Stage s;
  s.upload(definition(
      "a",
      R"({"id":"t","name":"t","type":"DECISION_TABLE","nextStep":"end","decisionTable":{"rules":[{"when":{"c":null},"outputs":{"hit":true}}]}},)" +
          kEnd));
  EXPECT_EQ(s.variables(s.start("a")), R"({"hit":true})");
}

TEST(processes, branches_of_a_task_or_a_wait_are_obeyed_before_its_next_step) {
  Stage s;
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

TEST(processes, versions_that_cannot_be_are_not_found) {
  Stage s;
  s.upload(definition("a", kEnd));
  for (const char* version : {"0", "-1", "2", "99999999999", "99999999999999999999"}) {
    s.get("/v1/definitions/a/versions/" + std::string(version));
    EXPECT_EQ(s.last_status, 404) << version;
  }
  s.get("/v1/definitions/a/versions/one");
  EXPECT_EQ(s.last_status, 400);
}

// A slice cuts bytes. What is stored must be readable again, so what is no character becomes
// U+FFFD.
TEST(processes, a_value_cut_inside_a_character_is_stored_as_text) {
  Stage s;
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

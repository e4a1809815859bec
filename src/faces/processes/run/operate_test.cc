// The operations of operators, their lists, batches, dry runs and user tasks.

#include "faces/processes/face_fixture_test.h"
#include "faces/processes/state/job.h"
#include "faces/processes/state/limiter.h"

namespace pawl::processes {
namespace {

const std::string kOps = "/pawl/v1/processes/instances/";

// Step d fails unless `ok` is true. Then come a job and the end.
void upload_fragile(FaceFixture& s, const std::string& name = "n") {
  s.upload(
      R"({"id":"a","name":")" + name +
      R"(","steps":[{"id":"d","name":"d","type":"DECISION","conditionalNextSteps":{"ok == true":"x"}},
    {"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
}

TEST(operators, a_failed_step_is_retried_with_edited_variables) {
  FaceFixture s;
  upload_fragile(s);
  std::string id = s.start("a", R"({"ok":false})");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_EQ(s.steps(id), R"(["d"])") << "a failed instance keeps its place";
  s.post(kOps + id + "/retry", R"({"reason":"again"})");
  EXPECT_EQ(s.status(id), "FAILED") << "the cause is still there";
  s.post(kOps + id + "/variables",
         R"({"reason":"mended","variables":{"ok":true},"remove":["nothing"]})");
  EXPECT_EQ(s.last_status, 200);
  s.post(kOps + id + "/retry", R"({"reason":"now"})");
  EXPECT_EQ(s.steps(id), R"(["x"])");
  s.finish("j");
  EXPECT_EQ(s.history(id), "d:FAILED d:FAILED d:COMPLETED x:COMPLETED end:COMPLETED");
  std::string events = json::print(s.get(kOps + id + "/events"));
  for (const char* part : {"mended", "again", "now", "tester", R"("ok":{"from":false,"to":true})"})
    EXPECT_NE(events.find(part), std::string::npos) << part;
  s.verify();
}

TEST(operators, a_step_is_retried_by_name_with_variables_merged_first) {
  FaceFixture s;
  upload_fragile(s);
  std::string id = s.start("a", R"({"ok":false,"kept":1})");
  s.post("/v1/instances/" + id + "/steps/x/retry", R"({"variables":{"ok":true}})");
  EXPECT_EQ(s.last_status, 409) << "it failed elsewhere";
  s.post("/v1/instances/" + id + "/steps/d/retry", R"({"variables":{"ok":true}})");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(s.status(id), "ACTIVE");
  EXPECT_EQ(s.steps(id), R"(["x"])");
  s.post("/v1/instances/" + id + "/steps/x/retry", "null");
  EXPECT_EQ(s.last_status, 409) << "it runs";
  s.post("/v1/instances/unknown/steps/x/retry", "");
  EXPECT_EQ(s.last_status, 404);
  s.verify();
}

TEST(operators, a_failed_job_is_skipped_or_moved) {
  FaceFixture s;
  upload_fragile(s);
  for (const char* operation : {"skip", "move"}) {
    std::string id = s.start("a", R"({"ok":true})");
    s.post("/v1/jobs/" + s.take("j") + "/fail", R"({"workerId":"w","errorMessage":"dead"})");
    EXPECT_EQ(s.status(id), "FAILED");
    s.post(kOps + id + "/" + operation, R"({"reason":"r","to":"end"})");
    EXPECT_EQ(s.last_status, 200);
    EXPECT_EQ(s.status(id), "COMPLETED");
  }
}

TEST(operators, a_failure_at_the_target_of_a_move_is_not_retried) {
  FaceFixture s;
  s.upload(
      R"({"id":"a","name":"n","steps":[{"id":"w","name":"w","type":"WAIT","nextStep":"d"},{"id":"d","name":"d","type":"DECISION","conditionalNextSteps":{"ok == true":"end"}},
    {"id":"end","name":"e","type":"END"}]})");
  for (const char* operation : {"skip", "move"}) {
    std::string id = s.start("a", R"({"ok":false})");
    s.post(kOps + id + "/" + operation, R"({"reason":"r","to":"d"})");
    EXPECT_EQ(s.last_status, 200);
    EXPECT_EQ(s.history(id), "w:SKIPPED d:FAILED");
  }
  s.verify();
}

TEST(operators, skipping_a_join_fires_it) {
  FaceFixture s;
  s.upload(
      R"({"id":"a","name":"n","steps":[{"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","b"],"joinStep":"m"},{"id":"a","name":"a","type":"WAIT","nextStep":"m"},
    {"id":"b","name":"b","type":"WAIT","nextStep":"m"},{"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"w"},{"id":"w","name":"w","type":"WAIT","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  std::string id = s.start("a");
  s.post("/v1/instances/" + id + "/signals/a", "");
  s.post(kOps + id + "/skip", R"({"reason":"r","stepId":"m"})");
  EXPECT_EQ(s.steps(id), R"(["b","w"])");
  s.post("/v1/instances/" + id + "/signals/b", "");
  EXPECT_EQ(s.steps(id), R"(["w"])") << "once";
  s.post("/v1/instances/" + id + "/signals/w", "");
  EXPECT_EQ(s.history(id),
            "f:COMPLETED a:COMPLETED b:COMPLETED m:SKIPPED w:COMPLETED end:COMPLETED");
  s.verify();
}

TEST(operators, a_paused_instance_holds_its_jobs_and_timers) {
  FaceFixture s;
  s.upload(
      R"({"id":"a","name":"n","steps":[{"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"y","boundaryEvents":[{"type":"TIMER","duration":"PT10S","interrupting":true,"targetStepId":"end"}]},
    {"id":"y","name":"y","type":"SERVICE_TASK","jobType":"k","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  std::string id = s.start("a");
  s.pass(4 * kSecond);
  s.post(kOps + id + "/pause", R"({"reason":"r"})");
  EXPECT_TRUE(s.take("j").empty());
  s.pass(100 * kSecond);
  EXPECT_EQ(s.steps(id), R"(["x"])") << "its timer stands still";
  s.post(kOps + id + "/resume", "{}");
  s.pass(5 * kSecond);
  std::string job = s.take("j");
  EXPECT_FALSE(job.empty());
  s.post(kOps + id + "/pause", "{}");
  EXPECT_EQ(s.complete(job), 204) << "work that is done is taken";
  EXPECT_TRUE(s.take("k").empty()) << "but the next step waits";
  s.post(kOps + id + "/resume", "{}");
  s.finish("k");
  EXPECT_EQ(s.status(id), "COMPLETED");
  EXPECT_EQ(s.open_jobs() + s.open_timers(), 0u);
  s.verify();
}

TEST(operators, definitions_and_job_types_are_paused) {
  FaceFixture s;
  upload_fragile(s);
  s.post("/pawl/v1/processes/definitions/a/pause", R"({"reason":"storm"})");
  json::Value answer = s.post("/v1/instances", R"({"definitionId":"a"})");
  EXPECT_EQ(s.last_status, 409);
  EXPECT_NE(json::print(answer).find("storm"), std::string::npos);
  s.post("/pawl/v1/processes/definitions/a/resume");
  std::string id = s.start("a", R"({"ok":true})");
  s.post("/pawl/v1/processes/job-types/j/pause", R"({"reason":"r"})");
  EXPECT_TRUE(s.take("j").empty());
  s.post("/pawl/v1/processes/job-types/j/resume");
  s.finish("j");
  EXPECT_EQ(s.status(id), "COMPLETED");
}

TEST(operators, instances_migrate_to_a_new_version_after_a_preview) {
  FaceFixture s;
  upload_fragile(s);
  std::string id = s.start("a", R"({"ok":true})");
  s.upload(
      R"({"id":"a","name":"two","steps":[{"id":"d","name":"d","type":"DECISION","conditionalNextSteps":{"true":"z"}},
    {"id":"z","name":"z","type":"SERVICE_TASK","jobType":"k","nextStep":"late"},{"id":"late","name":"e","type":"END"}]})");
  json::Value plan = s.post(kOps + id + "/migrate", R"({"preview":true})");
  EXPECT_EQ(plan.find("problems")->array().size(), 1u) << json::print(plan);
  s.post(kOps + id + "/migrate", R"({"reason":"r"})");
  EXPECT_EQ(s.last_status, 409);
  plan = s.post("/pawl/v1/processes/bulk/migrate",
                R"({"preview":true,"steps":{"x":"z"},"filter":{"definitionId":"a"}})");
  EXPECT_EQ(plan.find("matched")->as_int64(), 1) << json::print(plan);
  s.post("/pawl/v1/processes/bulk/migrate",
         R"({"reason":"r","steps":{"x":"z"},"filter":{"definitionId":"a","status":"ACTIVE"}})");
  EXPECT_TRUE(s.take("j").empty()) << "the job goes on under its new type";
  s.finish("k");
  EXPECT_EQ(s.history(id), "d:COMPLETED x:COMPLETED late:COMPLETED")
      << "an execution keeps the name it began under";
  EXPECT_EQ(s.get("/v1/instances/" + id).find("definitionVersion")->as_int64(), 2);
}

TEST(operators, a_waiting_join_migrates_with_its_gateway) {
  FaceFixture s;
  // In version 2 the gateway's join is k; m exists, too, as the join of another gateway.
  s.upload(
      R"({"id":"a","name":"n","steps":[{"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","b"],"joinStep":"m"},{"id":"a","name":"a","type":"WAIT","nextStep":"m"},
    {"id":"b","name":"b","type":"WAIT","nextStep":"m"},{"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  std::string id = s.start("a");
  s.post("/v1/instances/" + id + "/signals/a", "");
  s.upload(
      R"({"id":"a","name":"n","steps":[{"id":"f","name":"f","type":"PARALLEL_GATEWAY","parallelNextSteps":["a","b"],"joinStep":"k"},{"id":"a","name":"a","type":"WAIT","nextStep":"k"},
    {"id":"b","name":"b","type":"WAIT","nextStep":"k"},{"id":"k","name":"k","type":"JOIN_GATEWAY","nextStep":"g"},{"id":"g","name":"g","type":"PARALLEL_GATEWAY","parallelNextSteps":["m","m"],"joinStep":"m"},
    {"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  s.post(kOps + id + "/migrate", R"({"reason":"r","version":2})");
  EXPECT_EQ(s.last_status, 409) << "it would wait at a join that is not its gateway's";
  s.post(kOps + id + "/migrate", R"({"reason":"r","version":2,"steps":{"m":"k"}})");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(s.steps(id), R"(["b","k"])");
  s.post("/v1/instances/" + id + "/signals/b", "");
  EXPECT_EQ(s.status(id), "COMPLETED");
  s.verify();
}

TEST(operators, a_restart_makes_a_new_instance_at_a_past_step) {
  FaceFixture s;
  upload_fragile(s);
  std::string id = s.start("a", R"({"ok":true})");
  s.finish("j", R"({"done":1})");
  json::Value again = s.post(kOps + id + "/restart", R"({"stepId":"x","reason":"twice"})");
  EXPECT_EQ(s.last_status, 201) << json::print(again);
  std::string other(again.string_or("id"));
  EXPECT_EQ(s.steps(other), R"(["x"])");
  EXPECT_EQ(s.variables(other), R"({"ok":true})") << "the variables of then";
  EXPECT_EQ(again.string_or("previousInstanceId"), id);
}

TEST(operators, a_restart_needs_an_event_of_its_instance) {
  FaceFixture s;
  s.upload(
      R"({"id":"a","name":"a","steps":[{"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  std::string id = s.start("a");
  for (const char* event : {"99999", "-1"}) {
    s.post(kOps + id + "/restart", R"({"event":)" + std::string(event) + "}");
    EXPECT_EQ(s.last_status, 404) << event;
  }
}

TEST(operators, a_restart_has_the_variables_before_its_step) {
  FaceFixture s;
  s.post("/v1/definitions", R"({"id":"sums","name":"n","steps":[
    {"id":"one","name":"o","type":"TRANSFORMATION","transformations":{"n":"${n + 1}","seen":"yes"},"nextStep":"two"},
    {"id":"two","name":"t","type":"DECISION_TABLE","hitPolicy":"F","decisionTable":{"rules":[{"when":{},"outputs":{"n":"${n * 10}"}}]},"nextStep":"x"},
    {"id":"x","name":"x","type":"SERVICE_TASK","jobType":"j","nextStep":"three"},
    {"id":"three","name":"t","type":"TRANSFORMATION","transformations":{"n":"${n + 7}"},"nextStep":"e"},{"id":"e","name":"e","type":"END"}]})");
  ASSERT_EQ(s.last_status, 201);
  std::string id = s.start("sums", R"({"n":1})");
  s.finish("j", R"({"done":true})");
  EXPECT_EQ(s.variables(id), R"({"n":27,"seen":"yes","done":true})");
  auto again = [&](const std::string& order) {
    json::Value made = s.post(kOps + id + "/restart", order);
    EXPECT_EQ(s.last_status, 201) << json::print(made);
    return s.variables(std::string(made.string_or("id")));
  };
  EXPECT_EQ(again("{}"), R"({"n":20,"seen":"yes"})") << "from the beginning, up to the job";
  EXPECT_EQ(again(R"({"stepId":"two"})"), R"({"n":20,"seen":"yes"})");
  EXPECT_EQ(again(R"({"stepId":"x"})"), R"({"n":20,"seen":"yes"})");
  EXPECT_EQ(again(R"({"stepId":"three"})"), R"({"n":27,"seen":"yes","done":true})")
      << "not added twice";
  EXPECT_EQ(again(R"({"stepId":"three","variables":{"n":0}})"),
            R"({"n":7,"seen":"yes","done":true})");
}

// The table reads and writes n, and later steps of the same event change n again.
TEST(operators, events_name_the_rules_that_a_table_chose) {
  FaceFixture s;
  s.post("/v1/definitions", R"({"id":"tables","name":"n","steps":[
    {"id":"one","name":"o","type":"DECISION_TABLE","hitPolicy":"F","decisionTable":{"rules":[
      {"when":{"n":"n > 5"},"outputs":{"n":0}},{"when":{},"outputs":{"n":100}}]},"nextStep":"all"},
    {"id":"all","name":"a","type":"DECISION_TABLE","hitPolicy":"C","decisionTable":{"rules":[
      {"when":{"n":"n > 5"},"outputs":{"m":1}},{"when":{"n":"n > 500"},"outputs":{"m":2}},
      {"when":{},"outputs":{"m":3}}]},"nextStep":"two"},
    {"id":"two","name":"t","type":"TRANSFORMATION","transformations":{"n":7,"m":0},"nextStep":"e"},
    {"id":"e","name":"e","type":"END"}]})");
  ASSERT_EQ(s.last_status, 201);
  auto rules = [&](const std::string& n, const std::string& query) {
    const std::string id = s.start("tables", R"({"n":)" + n + "}");
    std::string out;
    const json::Value events = s.get(kOps + id + "/events" + query);
    for (const json::Value& event : events.find("items")->array())
      for (const json::Value& fact : event.find("facts")->array())
        if (const json::Value* chosen = fact.find("rules"))
          out += std::string(fact.string_or("stepId")) + json::print(*chosen);
    return out;
  };
  EXPECT_EQ(rules("9", ""), "one[0]all[2]");
  EXPECT_EQ(rules("1", ""), "one[1]all[0,2]");
  EXPECT_EQ(rules("1", "?variables=false"), "");
}

TEST(operators, the_state_as_of_any_event_can_be_read) {
  FaceFixture s;
  upload_fragile(s);
  std::string id = s.start("a", R"({"ok":true})");
  s.finish("j", R"({"done":1})");
  json::Value events = s.get(kOps + id + "/events");
  const json::Array& items = events.find("items")->array();
  ASSERT_EQ(items.size(), 2u);
  json::Value then = s.get(kOps + id + "/events/" + json::print(*items[0].find("event")));
  EXPECT_EQ(then.string_or("status"), "ACTIVE");
  EXPECT_EQ(json::print(*then.find("variables")), R"({"ok":true})");
}

TEST(operators, lists_filter_by_everything_they_promise) {
  FaceFixture s;
  upload_fragile(s);
  std::string failed = s.start("a", R"({"ok":false,"who":{"name":"Ann"}})");
  s.pass(kSecond);
  std::string running = s.start("a", R"({"ok":true,"who":{"name":"Bob"}})");
  auto count = [&](const std::string& query) {
    return s.get("/pawl/v1/processes/instances?" + query).find("items")->array().size();
  };
  EXPECT_EQ(count(""), 2u);
  EXPECT_EQ(count("status=FAILED"), 1u);
  EXPECT_EQ(count("definitionId=a&step=x"), 1u);
  EXPECT_EQ(count("variable=who.name=Bob"), 1u);
  EXPECT_EQ(count("variable=ok=false"), 1u);
  EXPECT_EQ(count("startedFrom=" + rfc3339(s.time)), 1u);
  EXPECT_EQ(count("startedTo=" + rfc3339(s.time - 1)), 1u);
  EXPECT_EQ(count("businessKey=none"), 0u);
  json::Value page = s.get("/pawl/v1/processes/instances?limit=1");
  EXPECT_EQ(page.find("items")->array()[0].string_or("id"), running);
  page =
      s.get("/pawl/v1/processes/instances?limit=1&cursor=" + std::string(page.string_or("cursor")));
  EXPECT_EQ(page.find("items")->array()[0].string_or("id"), failed);
  json::Value incidents = s.get("/pawl/v1/processes/incidents");
  EXPECT_EQ(incidents.find("items")->array()[0].find("count")->as_int64(), 1);
}

TEST(operators, bulk_retry_reports_each_outcome) {
  FaceFixture s;
  upload_fragile(s);
  for (int i = 0; i < 5; ++i)
    s.start("a", R"({"ok":false})");
  json::Value report =
      s.post("/pawl/v1/processes/bulk/retry",
             R"({"reason":"r","variables":{"ok":true},"filter":{"status":"FAILED"}})");
  EXPECT_EQ(report.find("succeeded")->as_int64(), 5) << json::print(report);
  EXPECT_EQ(s.get("/v1/instances?status=ACTIVE").find("total")->as_int64(), 5);
}

TEST(operators, unknown_members_of_a_script_are_refused) {
  FaceFixture s;
  upload_fragile(s);
  for (const char* script : {R"({"nope":{}})", R"({"x":{"r":1}})",
                             R"({"x":[{"variables":{}},{"varaibles":{}}]})", R"({"x":5})"}) {
    s.post("/pawl/v1/processes/dry-run",
           R"({"definitionId":"a","variables":{"ok":true},"script":)" + std::string(script) + "}");
    EXPECT_EQ(s.last_status, 400) << script;
  }
}

TEST(operators, a_dry_run_shows_the_path_and_writes_nothing) {
  FaceFixture s;
  upload_fragile(s);
  Seq before = s.durable();
  json::Value run = s.post(
      "/pawl/v1/processes/dry-run",
      R"({"definitionId":"a","variables":{"ok":true},"script":{"x":[{"error":"no","retryable":false}]}})");
  EXPECT_EQ(run.string_or("status"), "FAILED") << json::print(run);
  run = s.post(
      "/pawl/v1/processes/dry-run",
      R"({"definitionId":"a","variables":{"ok":true},"script":{"x":{"variables":{"r":1}}}})");
  EXPECT_EQ(run.string_or("status"), "COMPLETED");
  EXPECT_EQ(run.find("path")->array().size(), 3u);
  EXPECT_EQ(s.durable(), before);
}

TEST(operators, the_inbox_lists_open_user_tasks_oldest_first) {
  FaceFixture s;
  s.upload(
      R"({"id":"u","name":"n","steps":[{"id":"t","name":"Sign it","type":"USER_TASK","jobType":"form","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  std::string first = s.start("u");
  s.pass(kSecond);
  std::string second = s.start("u"), third = s.start("u");
  s.post("/v1/instances/" + third + "/cancel");
  json::Value page = s.get("/pawl/v1/processes/tasks?limit=1");
  EXPECT_EQ(page.find("items")->array()[0].string_or("instanceId"), first);
  EXPECT_EQ(page.find("items")->array()[0].string_or("name"), "Sign it");
  page = s.get("/pawl/v1/processes/tasks?limit=5&cursor=" + std::string(page.string_or("cursor")));
  ASSERT_EQ(page.find("items")->array().size(), 1u) << json::print(page);
  EXPECT_EQ(page.find("items")->array()[0].string_or("instanceId"), second);
  s.post("/v1/instances/" + second + "/user-tasks/t/complete", "");
  EXPECT_EQ(s.get("/pawl/v1/processes/tasks").find("items")->array().size(), 1u);
}

TEST(operators, a_task_is_listed_under_its_migrated_step) {
  FaceFixture s;
  auto version = [&](const std::string& step) {
    s.upload(
        R"({"id":"u","name":"n","steps":[{"id":")" + step +
        R"(","name":"t","type":"USER_TASK","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  };
  version("old");
  std::string id = s.start("u");
  version("new");
  s.post(kOps + id + "/migrate", R"({"reason":"r","version":2,"steps":{"old":"new"}})");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(s.get("/pawl/v1/processes/tasks").find("items")->array()[0].string_or("stepId"), "new");
  EXPECT_EQ(s.get("/pawl/v1/processes/tasks?step=new").find("items")->array().size(), 1u);
  EXPECT_EQ(s.get("/pawl/v1/processes/tasks?step=old").find("items")->array().size(), 0u);
}

TEST(operators, the_inbox_is_filtered) {
  FaceFixture s;
  for (const char* id : {"u", "v"})
    s.upload(
        R"({"id":")" + std::string(id) +
        R"(","name":"n","steps":[{"id":"t","name":"t","type":"USER_TASK","jobType":"form","nextStep":"s"},{"id":"s","name":"s","type":"USER_TASK","nextStep":"end"},{"id":"end","name":"e","type":"END"}]})");
  std::string first = s.start("u"), second = s.start("v");
  s.pass(kSecond);
  s.post("/v1/instances", R"({"definitionId":"u","businessKey":"k"})");
  s.post("/v1/instances/" + second + "/user-tasks/t/complete", "");
  for (auto [query, count] : {std::pair("", 3u),
                              {"definitionId=u", 2u},
                              {"businessKey=k", 1u},
                              {"step=s", 1u},
                              {"jobType=form", 2u},
                              {"definitionId=v&step=t", 0u}})
    EXPECT_EQ(s.get("/pawl/v1/processes/tasks?" + std::string(query)).find("items")->array().size(),
              count)
        << query;
  json::Value page = s.get("/pawl/v1/processes/tasks?step=t&limit=1");
  EXPECT_EQ(page.find("items")->array()[0].string_or("instanceId"), first);
  page = s.get("/pawl/v1/processes/tasks?step=t&limit=1&cursor=" +
               std::string(page.string_or("cursor")));
  EXPECT_EQ(page.find("items")->array()[0].string_or("businessKey"), "k");
  EXPECT_EQ(page.find("cursor"), nullptr);
}

TEST(operators, batches_report_each_outcome) {
  FaceFixture s;
  upload_fragile(s);
  json::Value report =
      s.post("/pawl/v1/processes/start-batch",
             R"({"items":[{"definitionId":"a","variables":{"ok":true}},{"definitionId":"zz"},5]})");
  EXPECT_EQ(report.find("succeeded")->as_int64(), 1) << json::print(report);
  const json::Array& items = report.find("items")->array();
  EXPECT_EQ(items[0].find("instance")->string_or("status"), "ACTIVE");
  EXPECT_EQ(items[1].find("status")->as_int64(), 404);
  EXPECT_EQ(items[2].find("status")->as_int64(), 400);
  std::string job = s.take("j");
  report = s.post(
      "/pawl/v1/processes/complete-batch",
      R"({"items":[{"jobId":")" + job + R"(","workerId":"w"},{"jobId":"nope","workerId":"w"}]})");
  EXPECT_EQ(report.find("succeeded")->as_int64(), 1);
  EXPECT_EQ(report.find("failed")->as_int64(), 1);
}

TEST(operators, a_mistyped_order_is_refused_and_changes_nothing) {
  FaceFixture s;
  s.upload(
      R"({"id":"a","name":"n","steps":[{"id":"w","name":"w","type":"WAIT","nextStep":"e"},{"id":"e","name":"e","type":"END"}]})");
  std::string at = "/pawl/v1/processes/instances/" + s.start("a", R"({"v":1})");
  const std::pair<const char*, const char*> orders[] = {
      {"variables", R"({"variables":[]})"}, {"variables", R"({"remove":"v"})"},
      {"variables", R"({"remove":[1]})"},   {"variables", R"({"reason":5})"},
      {"skip", R"({"stepId":1})"},          {"move", R"({"to":7})"},
      {"migrate", R"({"steps":[]})"},       {"migrate", R"({"steps":{"w":1}})"},
      {"restart", R"({"variables":5})"},    {"pause", R"({"preview":"no"})"}};
  for (const auto& [operation, body] : orders) {
    s.post(at + "/" + operation, body);
    EXPECT_EQ(s.last_status, 400) << operation << " " << body;
    s.post("/pawl/v1/processes/bulk/variables", R"({"instanceIds":["x"],"variables":3})");
    EXPECT_EQ(s.last_status, 400);
  }
  EXPECT_EQ(s.get(at).string_or("status"), "WAITING");
  s.post("/pawl/v1/processes/dry-run", R"({"definitionId":"a","script":{"w":{"variables":1}}})");
  EXPECT_EQ(s.last_status, 400);
  s.post("/pawl/v1/processes/dry-run", "{}");
  EXPECT_EQ(s.last_status, 400);
}

TEST(operators, a_time_range_includes_the_shown_microsecond) {
  FaceFixture s;
  s.upload(
      R"({"id":"a","name":"n","steps":[{"id":"w","name":"w","type":"WAIT","nextStep":"e"},{"id":"e","name":"e","type":"END"}]})");
  s.time += 1'234;  // nanoseconds that no answer shows
  std::string shown(s.get("/v1/instances/" + s.start("a")).string_or("startedAt"));
  for (const char* end : {"startedFrom", "startedTo", "updatedFrom", "updatedTo"})
    EXPECT_EQ(s.get("/pawl/v1/processes/instances?" + std::string(end) + "=" + shown)
                  .find("items")
                  ->array()
                  .size(),
              1u)
        << end << " " << shown;
}

TEST(operators, a_list_holds_a_bounded_amount_of_variables) {
  FaceFixture s;
  s.upload(definition("d", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd));
  const std::string variables = R"({"x":")" + std::string(4'000'000, 'x') + "\"}";
  for (int i = 0; i < 20; ++i)
    s.start("d", variables);
  json::Value refused = s.get("/v1/instances?pageSize=20");
  EXPECT_EQ(s.last_status, 413) << json::print(refused).substr(0, 200);
  s.get("/v1/instances?pageSize=5");
  EXPECT_EQ(s.last_status, 200);
  // The list of operators ends early, and its cursor goes on.
  Service service(s, s);
  auto first = service.find("t", {}, {}, 20);
  ASSERT_TRUE(first);
  EXPECT_LT(first->items.size(), 20u);
  auto rest = service.find("t", {}, first->cursor, 20);
  ASSERT_TRUE(rest);
  EXPECT_EQ(first->items.size() + rest->items.size(), 20u);
  EXPECT_EQ(rest->cursor, "");
}

// A quarantine with what the test puts into it.
struct FakeQuarantine {
  std::vector<Quarantine::Parked> parked;
  QuarantineAccess access() {
    return {[this] { return parked; },
            [this](std::string_view id) -> Result<void> {
              if (!std::erase_if(parked, [&](const auto& p) { return p.effect_id == id; }))
                return fail(Code::not_found, "NOT_PARKED", "the effect is not in quarantine");
              return {};
            }};
  }
};

TEST(operators, effects_in_quarantine_are_incidents_and_a_retry_releases_them) {
  FakeQuarantine held;
  FaceFixture s;
  s.quarantine = held.access();
  s.upload(definition(
      "waits",
      R"({"id":"w","name":"w","type":"WAIT","nextStep":"end","boundaryEvents":[{"type":"TIMER","duration":"PT1M","interrupting":true,"targetStepId":"end"}]},)" +
          kEnd));
  const std::string id = s.start("waits"), other = s.start("waits");
  const std::string execution(s.get(kOps + id).find("tokens")->array()[0].string_or("executionId"));
  const std::string effect = timer_effect_id("t", execution, 0);
  held.parked = {{effect, s.time},
                 {timer_effect_id("another tenant", execution, 0), s.time},
                 {"worlds|t|w|abc", s.time},
                 {"nonsense", s.time}};
  json::Value list = s.get("/pawl/v1/processes/incidents");
  ASSERT_EQ(list.find("items")->array().size(), 1u) << json::print(list);
  const json::Value& incident = list.find("items")->array()[0];
  EXPECT_EQ(incident.string_or("stepId"), "w");
  EXPECT_EQ(incident.string_or("sampleInstanceId"), id);
  EXPECT_NE(incident.string_or("sampleReason").find(effect), std::string::npos);
  EXPECT_TRUE(s.get("/pawl/v1/processes/incidents?definitionId=x").find("items")->array().empty());
  EXPECT_EQ(s.get(kOps + id).find("quarantine")->array()[0].string_or("effect"), effect);
  EXPECT_EQ(s.get(kOps + other).find("quarantine"), nullptr);
  s.post(kOps + other + "/retry", R"({"reason":"r"})");
  EXPECT_NE(s.last_status, 200) << "it has neither failed nor effects in quarantine";
  EXPECT_EQ(held.parked.size(), 4u);
  json::Value retried = s.post(kOps + id + "/retry", R"({"reason":"r"})");
  EXPECT_EQ(s.last_status, 200) << json::print(retried);
  EXPECT_EQ(retried.string_or("id"), id);
  EXPECT_EQ(held.parked.size(), 3u) << "only its own effect is released";
  EXPECT_EQ(s.get(kOps + id).find("quarantine"), nullptr);
  EXPECT_TRUE(s.get("/pawl/v1/processes/incidents").find("items")->array().empty());
}

TEST(operators, the_owner_of_an_effect_is_read_from_its_id) {
  const std::string job = "01ARZ3NDEKTSV4RRFFQ69G0005", instance = "01ARZ3NDEKTSV4RRFFQ69G0000";
  for (const auto& [effect, kind] : std::vector<std::pair<std::string, std::string>>{
           {job, "job"},
           {job_effect_id(job, 3), "job"},
           {timer_effect_id("t:x", job, 1), "timer"},
           {delay_timer_id("t", job_effect_id(job, 2)), "retry"},
           {"processes:chain:" + instance, "chain"}}) {
    auto owner = owner_of(effect);
    ASSERT_TRUE(owner) << effect;
    EXPECT_EQ(owner->kind, kind) << effect;
    EXPECT_EQ(owner->instance_id, instance) << effect;
  }
  EXPECT_FALSE(owner_of(limiter_timer_id("t", {.scope = "d", .key = "k"}, 7)));
}

// The pauses of all tenants stand where a tenant of this name would have its cells.
TEST(operators, a_tenant_with_a_reserved_name_is_refused) {
  FaceFixture f;
  f.tenant = "~paused";
  json::Value refused = f.post("/v1/definitions", definition("orders", kEnd));
  EXPECT_EQ(f.last_status, 400);
  EXPECT_NE(json::print(refused).find("reserved"), std::string::npos) << json::print(refused);
}

}  // namespace
}  // namespace pawl::processes

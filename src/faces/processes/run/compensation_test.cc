// Compensation: the steps that an instance has done are undone in reverse.

#include "faces/processes/face_fixture_test.h"
#include "faces/processes/limits.h"

namespace pawl::processes {
namespace {

const std::string kOps = "/pawl/v1/processes/instances/";

std::string step(const std::string& id, const std::string& next, const std::string& more = "") {
  return R"({"id":")" + id + R"(","name":"n","type":"SERVICE_TASK","jobType":")" + id + R"(",)" +
         more + R"("nextStep":")" + next + "\"},";
}
std::string undo(const std::string& type, const std::string& more = "") {
  return R"("compensation":{"jobType":")" + type + "\"" + more + "},";
}
// Two steps that can be undone, one that cannot, and one that may fail.
std::string saga(const std::string& more = R"("onFailure":"compensate",)") {
  return definition(
      "a",
      step("hotel", "flight", undo("cancel-hotel", R"(,"variables":{"booking":"${hotelId}"})")) +
          step("flight", "note", undo("cancel-flight", R"(,"retryCount":1)")) +
          step("note", "pay") + step("pay", "end") + kEnd,
      more);
}
void fail_job(FaceFixture& s, const std::string& type, bool retryable = false) {
  std::string job = s.take(type);
  ASSERT_FALSE(job.empty()) << type;
  s.post("/v1/jobs/" + job + "/fail", R"({"workerId":"w","errorMessage":"no )" + type +
                                          R"(","retryable":)" + (retryable ? "true}" : "false}"));
}
std::string to_pay(FaceFixture& s) {
  std::string id = s.start("a");
  s.finish("hotel", R"({"hotelId":7})");
  s.finish("flight");
  s.finish("note");
  return id;
}
void order(FaceFixture& s, const std::string& id, const std::string& verb, int status = 200) {
  json::Value answer = s.post(kOps + id + "/" + verb, R"({"reason":"because","to":"pay"})");
  ASSERT_EQ(s.last_status, status) << verb << json::print(answer);
}

TEST(compensation, a_failure_undoes_the_steps_in_reverse) {
  FaceFixture s;
  s.upload(saga());
  std::string id = to_pay(s);
  fail_job(s, "pay");
  EXPECT_EQ(s.status(id), "ACTIVE");
  json::Value shown = s.get("/v1/instances/" + id);
  EXPECT_TRUE(shown.find("compensating")) << json::print(shown);
  EXPECT_EQ(s.steps(id), R"(["flight.compensation"])");
  EXPECT_EQ(s.take("cancel-hotel"), "") << "one at a time";
  s.finish("cancel-flight", R"({"refund":3})");
  json::Value jobs = s.post("/v1/jobs/poll", R"({"workerId":"w","jobTypes":["cancel-hotel"]})");
  const json::Value& job = jobs.find("jobs")->array()[0];
  EXPECT_EQ(json::print(*job.find("variables")), R"({"booking":7})");
  EXPECT_EQ(job.string_or("stepId"), "hotel.compensation");
  s.complete(std::string(job.string_or("id")));
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_EQ(s.reason(id), "Compensated: no pay");
  EXPECT_EQ(s.variables(id), R"({"hotelId":7,"refund":3})");
  EXPECT_EQ(s.history(id),
            "hotel:COMPLETED flight:COMPLETED note:COMPLETED pay:FAILED "
            "flight.compensation:COMPLETED hotel.compensation:COMPLETED");
  std::string events = json::print(s.get(kOps + id + "/events"));
  EXPECT_NE(events.find("compensation began, 2 steps to undo: no pay"), std::string::npos);
  EXPECT_NE(events.find("compensation has ended"), std::string::npos);
  order(s, id, "retry", 409);
  order(s, id, "compensate", 409);
  EXPECT_EQ(s.open_jobs(), 0u);
  s.verify();
}

TEST(compensation, without_it_a_failure_stays_until_an_operator_decides) {
  FaceFixture s;
  s.upload(saga(""));
  std::string id = to_pay(s);
  fail_job(s, "pay");
  EXPECT_EQ(s.status(id), "FAILED");
  order(s, id, "compensate");
  EXPECT_EQ(s.status(id), "ACTIVE");
  s.finish("cancel-flight");
  s.finish("cancel-hotel");
  EXPECT_EQ(s.reason(id), "Compensated: no pay");
  std::string running = to_pay(s);
  order(s, running, "compensate");
  EXPECT_EQ(s.take("pay"), "") << "what runs is taken away";
  s.finish("cancel-flight");
  s.finish("cancel-hotel");
  EXPECT_EQ(s.reason(running), "Compensated: because");
  std::string fresh = s.start("a");
  order(s, fresh, "compensate", 409);
  std::string done = to_pay(s);
  s.finish("hotel");
  s.finish("pay");
  EXPECT_EQ(s.status(done), "COMPLETED");
  order(s, done, "compensate", 409);
  s.verify();
}

TEST(compensation, one_that_fails_waits_for_an_operator) {
  FaceFixture s;
  s.upload(saga());
  std::string id = to_pay(s);
  fail_job(s, "pay");
  fail_job(s, "cancel-flight", true);
  EXPECT_EQ(s.status(id), "ACTIVE") << "it has one retry";
  fail_job(s, "cancel-flight", true);
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_EQ(s.reason(id), "CompensationFailed: no cancel-flight");
  order(s, id, "move", 409);
  order(s, id, "compensate", 409);
  s.post("/v1/instances/" + id + "/steps/flight.compensation/retry");
  EXPECT_EQ(s.last_status, 200);
  fail_job(s, "cancel-flight", false);
  order(s, id, "skip");
  s.finish("cancel-hotel");
  EXPECT_EQ(s.reason(id), "Compensated: no pay");
  s.verify();
}

TEST(compensation, it_can_be_paused_and_cancelled) {
  FaceFixture s;
  s.upload(saga());
  std::string id = to_pay(s);
  fail_job(s, "pay");
  std::string job = s.take("cancel-flight");
  order(s, id, "pause");
  EXPECT_EQ(s.complete(job), 204);
  EXPECT_EQ(s.take("cancel-hotel"), "") << "paused between two compensations";
  order(s, id, "resume");
  order(s, id, "pause");
  order(s, id, "resume");
  s.finish("cancel-hotel");
  EXPECT_EQ(s.status(id), "FAILED");
  std::string other = to_pay(s);
  fail_job(s, "pay");
  order(s, other, "cancel");
  EXPECT_EQ(s.status(other), "CANCELLED");
  EXPECT_EQ(s.open_jobs(), 0u);
  s.verify();
}

TEST(compensation, branches_children_and_people_are_undone_too) {
  FaceFixture s;
  s.upload(definition("child", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd));
  s.upload(definition(
      "a",
      R"({"id":"g","name":"g","type":"PARALLEL_GATEWAY","parallelNextSteps":["u","c","x"],"joinStep":"m"},)"
      R"({"id":"u","name":"u","type":"USER_TASK",)" +
          undo("undo-u") +
          R"("nextStep":"m"},)"
          R"({"id":"c","name":"c","type":"CALL","call":{"workflowId":"child"},)" +
          undo("undo-c") + R"("nextStep":"m"},)" + step("x", "m") +
          R"({"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" + kEnd,
      R"("onFailure":"compensate",)"));
  std::string id = s.start("a");
  s.post("/v1/instances/" + id + "/user-tasks/u/complete");
  fail_job(s, "x");
  EXPECT_EQ(s.get("/v1/instances?definitionId=child&status=CANCELLED").find("total")->as_int64(), 1)
      << "a child that runs is cancelled, not undone";
  s.finish("undo-u");
  EXPECT_EQ(s.status(id), "FAILED");
  std::string second = s.start("a");
  json::Value child = s.get("/v1/instances?definitionId=child&status=WAITING");
  s.post("/v1/instances/" + std::string(child.find("items")->array()[0].string_or("id")) +
         "/signals/w");
  fail_job(s, "x");
  s.finish("undo-c");
  EXPECT_EQ(s.status(second), "FAILED");
  s.verify();
}

TEST(compensation, a_failed_child_that_is_undone_fails_its_parent_afterwards) {
  FaceFixture s;
  s.upload(saga());
  s.upload(definition("top", R"({"id":"c","name":"c","type":"CALL","call":{"workflowId":"a"},)"
                             R"("nextStep":"end"},)" +
                                 kEnd));
  std::string id = s.start("top");
  s.finish("hotel", R"({"hotelId":7})");
  fail_job(s, "flight");
  EXPECT_EQ(s.status(id), "ACTIVE") << "the child undoes its steps";
  s.finish("cancel-hotel");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("Compensated: no flight"), std::string::npos);
  s.verify();
}

TEST(compensation, the_steps_to_undo_are_limited) {
  FaceFixture s;
  s.upload(definition("a", step("t", "t2", undo("u")) +
                               R"({"id":"t2","name":"n","type":"DECISION","conditionalNextSteps":)"
                               R"({"false":"end","true":"t"}},)" +
                               kEnd));
  std::string id = s.start("a");
  for (size_t i = 0; i < kMaxCompensations; ++i)
    s.finish("t");
  EXPECT_EQ(s.status(id), "ACTIVE");
  s.finish("t");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("CompensationLimitReached"), std::string::npos);
  s.verify();
}

TEST(compensation, a_migration_keeps_what_can_be_undone) {
  FaceFixture s;
  s.upload(saga());
  std::string id = to_pay(s);
  s.upload(definition(
      "a",
      step("flight", "note", undo("new-flight")) + step("note", "pay") + step("pay", "end") + kEnd,
      R"("onFailure":"compensate",)"));
  s.post(kOps + id + "/migrate", R"({"reason":"r","version":2})");
  ASSERT_EQ(s.last_status, 200);
  fail_job(s, "pay");
  s.finish("new-flight");
  EXPECT_EQ(s.status(id), "FAILED") << "the hotel has no step any more";
  s.verify();
}

TEST(compensation, bad_ones_refuse_the_upload) {
  FaceFixture s;
  for (const auto& [document, words] : std::initializer_list<std::pair<std::string, const char*>>{
           {definition("a", step("t", "end", R"("compensation":{},)") + kEnd),
            "compensation.jobType is required"},
           {definition("a", step("t", "end", R"("compensation":{"jobType":"u","type":1},)") + kEnd),
            "unknown field \"type\""},
           {definition("a", step("t", "end", undo("u", R"(,"variables":{"x":"${1 +}"})")) + kEnd),
            "is not an expression"},
           {definition("a", R"({"id":"w","name":"w","type":"WAIT",)" + undo("u") +
                                R"("nextStep":"end"},)" + kEnd),
            "compensation belongs to"},
           {definition("a", kEnd, R"("onFailure":"panic",)"), "onFailure must be"}}) {
    json::Value answer = s.post("/v1/definitions", document);
    EXPECT_EQ(s.last_status, 400) << document;
    EXPECT_NE(answer.string_or("reason").find(words), std::string::npos) << json::print(answer);
  }
}

}  // namespace
}  // namespace pawl::processes

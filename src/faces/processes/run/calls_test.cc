// Child workflows: a CALL starts an instance of another definition, and waits for its end or not.

#include "faces/processes/face_fixture_test.h"
#include "faces/processes/limits.h"

namespace pawl::processes {
namespace {

std::string parent(const std::string& call, const std::string& more = "") {
  return definition("parent", R"({"id":"c","name":"c","type":"CALL","call":)" + call + "," + more +
                                  R"("nextStep":"u"},)"
                                  R"({"id":"u","name":"u","type":"USER_TASK","nextStep":"end"},)" +
                                  kEnd);
}
std::string child_of(const std::string& type = "j") {
  return definition("child", R"({"id":"t","name":"t","type":"SERVICE_TASK","jobType":")" + type +
                                 R"(","nextStep":"end"},)" + kEnd);
}
const std::string kOps = "/pawl/v1/processes/instances";

// The child that the parent waits for.
std::string child(FaceFixture& s, const std::string& id) {
  json::Value shown = s.get(kOps + "/" + id);
  return std::string(shown.find("tokens")->array()[0].string_or("childInstanceId"));
}
void fail_job(FaceFixture& s) {
  s.post("/v1/jobs/" + s.take("j") + "/fail",
         R"({"workerId":"w","errorMessage":"no paper","retryable":false})");
}
void order(FaceFixture& s, const std::string& id, const std::string& verb,
           const std::string& more = "") {
  s.post(kOps + "/" + id + "/" + verb, R"({"reason":"r")" + more + "}");
  ASSERT_EQ(s.last_status, 200) << verb;
}

TEST(call, the_parent_waits_for_the_end_and_gets_the_variables) {
  FaceFixture s;
  s.upload(child_of());
  s.upload(parent(R"({"workflowId":"child"})"));
  std::string id = s.start("parent", R"({"a":1})");
  EXPECT_EQ(s.status(id), "ACTIVE");
  std::string called = child(s, id);
  ASSERT_FALSE(called.empty());
  EXPECT_EQ(s.variables(called), R"({"a":1})");
  EXPECT_EQ(s.get("/v1/instances/" + called).string_or("parentInstanceId"), id);
  json::Value children = s.get(kOps + "?parentInstanceId=" + id);
  ASSERT_EQ(children.find("items")->array().size(), 1u);
  s.finish("j", R"({"b":2})");
  EXPECT_EQ(s.status(called), "COMPLETED");
  EXPECT_EQ(s.steps(id), R"(["u"])");
  EXPECT_EQ(s.variables(id), R"({"a":1,"b":2})");
  EXPECT_EQ(s.history(id), "c:COMPLETED u:RUNNING");
  std::string events = json::print(s.get(kOps + "/" + id + "/events"));
  EXPECT_NE(events.find("started child " + called), std::string::npos);
  EXPECT_NE(events.find("child " + called + " has ended"), std::string::npos);
  s.verify();
}

TEST(call, variables_outputs_and_key_are_expressions) {
  FaceFixture s;
  s.upload(child_of());
  s.upload(parent(
      R"x({"workflowId":"child","version":1,"variables":{"n":"${a + 1}","text":"as it is"},)x"
      R"x("outputs":{"result":"${b * 2}"},"businessKey":"order"})x"));
  std::string id = s.start("parent", R"({"a":1,"order":"o7"})");
  std::string called = child(s, id);
  EXPECT_EQ(s.variables(called), R"({"n":2,"text":"as it is"})");
  EXPECT_EQ(s.get("/v1/instances/" + called).string_or("businessKey"), "o7");
  s.finish("j", R"({"b":21})");
  EXPECT_EQ(s.variables(id), R"({"a":1,"order":"o7","result":42})");
  s.verify();
}

TEST(call, a_child_that_nobody_waits_for_runs_on_its_own) {
  FaceFixture s;
  s.upload(child_of());
  s.upload(parent(R"({"workflowId":"child","wait":false})"));
  std::string id = s.start("parent");
  EXPECT_EQ(s.steps(id), R"(["u"])");
  s.post("/v1/instances/" + id + "/cancel");
  s.finish("j");
  EXPECT_EQ(s.get("/v1/instances?definitionId=child&status=COMPLETED").find("total")->as_int64(), 1)
      << "a cancel of the parent does not reach it";
  s.upload(definition("gone", R"({"id":"c","name":"c","type":"CALL","call":{"workflowId":"none",)"
                              R"("wait":false},"nextStep":"end"},)" +
                                  kEnd));
  id = s.start("gone");
  EXPECT_EQ(s.status(id), "COMPLETED");
  EXPECT_NE(json::print(s.get(kOps + "/" + id + "/events")).find("ChildNotStarted"),
            std::string::npos);
  s.verify();
}

TEST(call, a_child_that_ends_at_once_continues_its_parent) {
  FaceFixture s;
  s.upload(definition("child", R"({"id":"x","name":"x","type":"TRANSFORMATION","transformations":)"
                               R"({"made":true},"nextStep":"end"},)" +
                                   kEnd));
  s.upload(parent(R"({"workflowId":"child"})"));
  std::string id = s.start("parent");
  EXPECT_EQ(s.steps(id), R"(["u"])");
  EXPECT_EQ(s.variables(id), R"({"made":true})");
  s.verify();
}

TEST(call, a_failed_or_cancelled_child_fails_the_step) {
  FaceFixture s;
  s.upload(child_of());
  s.upload(parent(R"({"workflowId":"child"})"));
  std::string id = s.start("parent");
  std::string first = child(s, id);
  fail_job(s);
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("ChildFailed: instance \"" + first), std::string::npos);
  EXPECT_NE(s.reason(id).find("no paper"), std::string::npos);
  order(s, id, "retry");
  std::string second = child(s, id);
  EXPECT_NE(second, first) << "a retry starts a new child";
  s.post("/v1/instances/" + second + "/cancel", R"({"reason":"enough"})");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("ChildCancelled"), std::string::npos);
  order(s, id, "retry");
  s.finish("j");
  EXPECT_EQ(s.steps(id), R"(["u"])");
  s.verify();
}

TEST(call, a_child_that_cannot_start_fails_the_step) {
  FaceFixture s;
  s.upload(parent(R"({"workflowId":"child","variables":{"n":"text"},"businessKey":"key"})"));
  std::string missing = s.start("parent", R"({"key":1})");
  EXPECT_EQ(s.status(missing), "FAILED");
  EXPECT_NE(s.reason(missing).find("ChildNotStarted: definition \"child\" not found"),
            std::string::npos)
      << s.reason(missing);
  s.upload(definition("child", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd,
                      R"("businessKey":{"unique":"running","conflict":"return"},)"));
  std::string first = s.start("parent", R"({"key":1})"), second = s.start("parent", R"({"key":1})");
  EXPECT_EQ(s.status(first), "ACTIVE");
  EXPECT_NE(s.reason(second).find("is taken by instance"), std::string::npos)
      << "an instance that exists is nobody's child";
  s.upload(definition("child", kEnd, R"("inputSchema":{"properties":{"n":{"type":"number"}}},)"));
  std::string wrong = s.start("parent", R"({"key":2})");
  EXPECT_NE(s.reason(wrong).find("do not match the inputSchema"), std::string::npos);
  std::string no_key = s.start("parent");
  EXPECT_EQ(s.status(no_key), "FAILED");
  s.verify();
}

TEST(call, cancel_goes_down) {
  FaceFixture s;
  s.upload(child_of());
  s.upload(definition("middle", R"({"id":"c","name":"c","type":"CALL",)"
                                R"("call":{"workflowId":"child"},"nextStep":"end"},)" +
                                    kEnd));
  s.upload(parent(R"({"workflowId":"middle"})",
                  R"("boundaryEvents":[{"type":"TIMER","duration":"PT1H","interrupting":true,)"
                  R"("targetStepId":"u"}],)"));
  auto tree = [&] {
    std::string id = s.start("parent");
    std::string middle = child(s, id);
    return std::array{id, middle, child(s, middle)};
  };
  auto cancelled = tree();
  s.post("/v1/instances/" + cancelled[0] + "/cancel");
  EXPECT_EQ(s.status(cancelled[1]) + s.status(cancelled[2]), "CANCELLEDCANCELLED");
  EXPECT_NE(s.reason(cancelled[2]).find("cancelled with its parent " + cancelled[1]),
            std::string::npos);
  auto timed = tree();
  s.pass(3600 * kSecond);
  EXPECT_EQ(s.steps(timed[0]), R"(["u"])");
  EXPECT_EQ(s.status(timed[2]), "CANCELLED");
  auto moved = tree();
  order(s, moved[0], "skip");
  EXPECT_EQ(s.status(moved[2]), "CANCELLED");
  EXPECT_EQ(s.open_jobs(), 0u);
  s.verify();
}

TEST(call, the_end_of_a_child_is_seen_when_the_parent_goes_on) {
  FaceFixture s;
  s.upload(child_of());
  s.upload(definition(
      "parent",
      R"({"id":"g","name":"g","type":"PARALLEL_GATEWAY","parallelNextSteps":["c","f"],"joinStep":"m"},)"
      R"({"id":"c","name":"c","type":"CALL","call":{"workflowId":"child"},"nextStep":"m"},)"
      R"({"id":"f","name":"f","type":"SERVICE_TASK","jobType":"f","nextStep":"m"},)"
      R"({"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
          kEnd));
  std::string failed = s.start("parent");
  s.post("/v1/jobs/" + s.take("f") + "/fail",
         R"({"workflowId":"w","workerId":"w","errorMessage":"no","retryable":false})");
  ASSERT_EQ(s.status(failed), "FAILED");
  s.finish("j");
  order(s, failed, "retry");
  s.finish("f");
  EXPECT_EQ(s.status(failed), "COMPLETED");
  std::string paused = s.start("parent");
  order(s, paused, "pause");
  s.finish("j");
  order(s, paused, "resume");
  s.finish("f");
  EXPECT_EQ(s.status(paused), "COMPLETED");
  s.verify();
}

TEST(call, a_result_that_is_too_large_fails_the_step) {
  FaceFixture s;
  s.upload(child_of());
  s.upload(parent(R"({"workflowId":"child","variables":{}})"));
  const std::string half(kVariablesBytes * 2 / 3, 'x');
  std::string id = s.start("parent", R"({"a":")" + half + "\"}");
  s.finish("j", R"({"b":")" + half + "\"}");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("has a result that cannot be taken"), std::string::npos);
  s.verify();
}

TEST(call, a_workflow_that_calls_itself_ends) {
  FaceFixture s;
  s.upload(definition("loop", R"({"id":"c","name":"c","type":"CALL",)"
                              R"("call":{"workflowId":"loop"},"nextStep":"end"},)" +
                                  kEnd));
  std::string id = s.start("loop");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("CallDepthReached"), std::string::npos) << s.reason(id);
  EXPECT_EQ(s.get("/v1/instances").find("total")->as_int64(), kMaxCallDepth + 1);
  s.verify();
}

TEST(call, a_deleted_child_or_parent_leaves_no_trace_of_the_other) {
  FaceFixture s;
  s.upload(child_of());
  s.upload(parent(R"({"workflowId":"child"})"));
  std::string id = s.start("parent");
  order(s, id, "move", R"(,"to":"end")");
  EXPECT_EQ(s.status(id), "COMPLETED");
  s.call("DELETE", "/v1/instances/" + id);
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(s.get("/v1/instances?status=CANCELLED").find("total")->as_int64(), 1);
  s.verify();
}

TEST(call, bad_calls_refuse_the_upload) {
  FaceFixture s;
  for (const auto& [document, words] : std::initializer_list<std::pair<std::string, const char*>>{
           {parent(R"({})"), "call.workflowId is required"},
           {parent(R"({"workflowId":7})"), "workflowId must be a string"},
           {parent(R"({"workflowId":"a","version":-1})"), "call.version must be a version"},
           {parent(R"({"workflowId":"a","outputs":{},"wait":false})"), "outputs needs the end"},
           {parent(R"({"workflowId":"a","variables":{"x":"${1 +}"}})"), "is not an expression"},
           {parent(R"({"workflowId":"a","businessKey":"1 +"})"),
            "businessKey is not an expression"},
           {parent(R"({"workflowId":"a","input":1})"), "unknown field \"input\""},
           {parent(R"({"workflowId":"a"})", R"("retryCount":1,)"), "retryCount is not valid"},
           {definition("a", R"({"id":"c","name":"c","type":"CALL","nextStep":"end"},)" + kEnd),
            "call is required"},
           {definition("a", R"({"id":"c","name":"c","type":"WAIT","call":{"workflowId":"a"},)"
                            R"("nextStep":"end"},)" +
                                kEnd),
            "call belongs to a CALL"}}) {
    json::Value answer = s.post("/v1/definitions", document);
    EXPECT_EQ(s.last_status, 400) << document;
    EXPECT_NE(answer.string_or("reason").find(words), std::string::npos) << json::print(answer);
  }
}

}  // namespace
}  // namespace pawl::processes

// Signals that come before their WAIT, and signals by name and correlation key.

#include "faces/processes/face_fixture_test.h"
#include "faces/processes/limits.h"

namespace pawl::processes {
namespace {

const std::string kSignals = "/pawl/v1/processes/signals";

// A task, then a WAIT.
std::string late_wait(const std::string& more) {
  return definition("a",
                    R"({"id":"t","name":"t","type":"SERVICE_TASK","jobType":"j","nextStep":"w"},)"
                    R"({"id":"w","name":"w","type":"WAIT",)" +
                        more + R"("nextStep":"end"},)" + kEnd);
}
std::string start(FaceFixture& s, const std::string& key, const std::string& variables = "{}") {
  json::Value answer = s.post("/v1/instances", R"({"definitionId":"a","businessKey":")" + key +
                                                   R"(","variables":)" + variables + "}");
  EXPECT_EQ(s.last_status, 201) << json::print(answer);
  return std::string(answer.string_or("id"));
}
json::Value send(FaceFixture& s, const std::string& key, const std::string& more = "") {
  return s.post(kSignals, R"({"name":"paid","correlationKey":")" + key + "\"" + more + "}");
}
size_t kept(FaceFixture& s, const std::string& query = "") {
  return s.get(kSignals + query).find("items")->array().size();
}

TEST(signals, one_that_comes_early_is_kept_for_its_wait) {
  FaceFixture s;
  s.upload(late_wait(R"("signal":"paid",)"));
  std::string id = start(s, "k");
  json::Value answer = send(s, "k", R"(,"variables":{"amount":5})");
  EXPECT_EQ(s.last_status, 202);
  EXPECT_FALSE(answer.find("delivered")->boolean());
  EXPECT_EQ(kept(s), 1u);
  EXPECT_EQ(kept(s, "?name=paid&correlationKey=k"), 1u);
  EXPECT_EQ(kept(s, "?name=other"), 0u);
  send(s, "other");
  s.finish("j");
  EXPECT_EQ(s.status(id), "COMPLETED");
  EXPECT_EQ(s.variables(id), R"({"amount":5})");
  EXPECT_EQ(s.history(id), "t:COMPLETED w:COMPLETED end:COMPLETED");
  EXPECT_EQ(kept(s), 1u) << "the one with another key";
  std::string events = json::print(s.get("/pawl/v1/processes/instances/" + id + "/events"));
  EXPECT_NE(events.find("took a signal that was kept"), std::string::npos) << events;
  s.verify();
}

TEST(signals, the_longest_wait_takes_the_signal_and_only_it) {
  FaceFixture s;
  s.upload(late_wait(R"("signal":"paid","correlationKey":"order",)"));
  std::string first = start(s, "", R"({"order":7})"), second = start(s, "", R"({"order":7})");
  s.finish("j");
  s.pass(kSecond);
  s.finish("j");
  json::Value answer = send(s, "7", R"(,"variables":{"a":1})");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(answer.string_or("instanceId"), first);
  EXPECT_EQ(answer.string_or("stepId"), "w");
  EXPECT_EQ(s.status(first), "COMPLETED");
  EXPECT_EQ(s.status(second), "WAITING");
  s.tenant = "other";
  send(s, "7");
  EXPECT_EQ(s.last_status, 202) << "tenants do not see each other";
  s.tenant = FaceFixture::kTenant;
  send(s, "7");
  EXPECT_EQ(s.status(second), "COMPLETED");
  s.verify();
}

TEST(signals, a_kept_signal_ends_with_its_time) {
  FaceFixture s;
  s.upload(late_wait(R"("signal":"paid",)"));
  std::string id = start(s, "k");
  send(s, "k", R"(,"ttl":"PT1M")");
  send(s, "k", R"(,"ttl":"PT1H","variables":{"second":true})");
  s.pass(61 * kSecond);
  EXPECT_EQ(kept(s), 1u);
  s.finish("j");
  EXPECT_EQ(s.variables(id), R"({"second":true})");
  EXPECT_EQ(s.open_timers(), 0u) << "a signal that was taken has no timer";
  send(s, "k", R"(,"ttl":"PT0S")");
  EXPECT_EQ(s.last_status, 409) << "not kept, and nobody waits";
  s.verify();
}

TEST(signals, a_paused_or_failed_instance_takes_signals_when_it_goes_on) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"g","name":"g","type":"PARALLEL_GATEWAY","parallelNextSteps":["t","w"],"joinStep":"m"},)"
      R"({"id":"t","name":"t","type":"SERVICE_TASK","jobType":"j","nextStep":"m"},)"
      R"({"id":"w","name":"w","type":"WAIT","signal":"paid","nextStep":"m"},)"
      R"({"id":"m","name":"m","type":"JOIN_GATEWAY","nextStep":"end"},)" +
          kEnd));
  std::string id = start(s, "k");
  auto order = [&](const std::string& verb) {
    s.post("/pawl/v1/processes/instances/" + id + "/" + verb, R"({"reason":"r"})");
    EXPECT_EQ(s.last_status, 200);
  };
  order("pause");
  send(s, "k");
  EXPECT_EQ(s.last_status, 202) << "a paused instance does not move";
  order("resume");
  EXPECT_EQ(s.steps(id), R"(["t","m"])");
  EXPECT_EQ(kept(s), 0u);
  std::string second = start(s, "l");
  s.finish("j");
  s.post("/v1/jobs/" + s.take("j") + "/fail",
         R"({"workerId":"w","errorMessage":"no","retryable":false})");
  ASSERT_EQ(s.status(second), "FAILED");
  send(s, "l");
  EXPECT_EQ(s.last_status, 202);
  id = second;
  order("retry");
  s.finish("j");
  EXPECT_EQ(s.status(second), "COMPLETED");
  s.verify();
}

TEST(signals, a_wait_that_was_left_takes_nothing) {
  FaceFixture s;
  s.upload(definition("a", R"({"id":"w","name":"w","type":"WAIT","signal":"paid","nextStep":"end",)"
                           R"("boundaryEvents":[{"type":"TIMER","duration":"PT1M",)"
                           R"("interrupting":true,"targetStepId":"u"}]},)"
                           R"({"id":"u","name":"u","type":"USER_TASK","nextStep":"end"},)" +
                               kEnd));
  std::string timed = start(s, "k");
  s.pass(61 * kSecond);
  std::string cancelled = start(s, "k"), direct = start(s, "k"), moved = start(s, "k");
  s.post("/v1/instances/" + cancelled + "/cancel");
  s.post("/v1/instances/" + direct + "/signals/w", "");
  s.post("/pawl/v1/processes/instances/" + moved + "/move", R"({"reason":"r","to":"u"})");
  send(s, "k");
  EXPECT_EQ(s.last_status, 202);
  EXPECT_EQ(s.status(timed) + s.status(moved), "WAITINGWAITING");
  s.verify();
}

TEST(signals, keep_by_step_waits_in_the_instance) {
  FaceFixture s;
  s.upload(late_wait(""));
  std::string id = s.start("a");
  const std::string path = "/v1/instances/" + id + "/signals/";
  s.post(path + "w", "{}");
  EXPECT_EQ(s.last_status, 409) << "without keep the contract holds";
  json::Value answer = s.post(path + "w?keep=true", R"({"a":1})");
  EXPECT_EQ(s.last_status, 202);
  EXPECT_TRUE(answer.find("kept")->boolean());
  s.post(path + "none?keep=true", "{}");
  EXPECT_EQ(s.last_status, 409);
  s.post(path + "t?keep=true", "{}");
  EXPECT_EQ(s.last_status, 400);
  for (size_t i = 1; i < kKeptSignalsOfInstance; ++i)
    s.post(path + "w?keep=true", "{}");
  EXPECT_EQ(s.last_status, 202);
  s.post(path + "w?keep=true", "{}");
  EXPECT_EQ(s.last_status, 429);
  s.finish("j");
  EXPECT_EQ(s.status(id), "COMPLETED");
  EXPECT_EQ(s.variables(id), R"({"a":1})");
  s.post(path + "w?keep=true", "{}");
  EXPECT_EQ(s.last_status, 409) << "it has ended";
  s.verify();
}

TEST(signals, kept_ones_are_limited_for_each_key) {
  FaceFixture s;
  for (size_t i = 0; i < kKeptSignals; ++i)
    send(s, "k");
  EXPECT_EQ(s.last_status, 202);
  json::Value answer = send(s, "k");
  EXPECT_EQ(s.last_status, 429) << json::print(answer);
  send(s, "l");
  EXPECT_EQ(s.last_status, 202);
  json::Value page = s.get(kSignals + "?pageSize=200&correlationKey=k");
  ASSERT_EQ(page.find("items")->array().size(), 200u);
  page = s.get(kSignals +
               "?pageSize=200&correlationKey=k&cursor=" + std::string(page.string_or("cursor")));
  EXPECT_EQ(page.find("items")->array().size(), kKeptSignals - 200);
  std::string id(page.find("items")->array()[0].string_or("id"));
  s.call("DELETE", kSignals + "/" + id);
  EXPECT_EQ(s.last_status, 204);
  s.call("DELETE", kSignals + "/" + id);
  EXPECT_EQ(s.last_status, 404);
  EXPECT_EQ(s.open_timers(), kKeptSignals);
  s.verify();
}

TEST(signals, one_that_does_not_match_the_schema_is_refused_or_dropped) {
  FaceFixture s;
  s.upload(late_wait(R"("signal":"paid","outputsSchema":{"required":["amount"]},)"));
  std::string id = start(s, "k");
  send(s, "k");
  EXPECT_EQ(s.last_status, 202) << "nobody knows its WAIT yet";
  s.finish("j");
  EXPECT_EQ(s.status(id), "WAITING");
  EXPECT_EQ(kept(s), 0u);
  std::string events = json::print(s.get("/pawl/v1/processes/instances/" + id + "/events"));
  EXPECT_NE(events.find("a kept signal was dropped"), std::string::npos);
  send(s, "k");
  EXPECT_EQ(s.last_status, 400);
  send(s, "k", R"(,"variables":{"amount":1})");
  EXPECT_EQ(s.last_status, 200);
  s.verify();
}

TEST(signals, one_that_is_too_large_for_the_instance_is_dropped) {
  FaceFixture s;
  s.upload(late_wait(R"("signal":"paid",)"));
  const std::string half(kVariablesBytes * 2 / 3, 'x');
  std::string id = start(s, "k", R"({"a":")" + half + "\"}");
  send(s, "k", R"(,"variables":{"b":")" + half + "\"}");
  EXPECT_EQ(s.last_status, 202);
  s.finish("j");
  EXPECT_EQ(s.status(id), "WAITING") << "the result of the worker is not refused for it";
  send(s, "k", R"(,"variables":{"b":")" + half + "\"}");
  EXPECT_EQ(s.last_status, 413);
  send(s, "k");
  EXPECT_EQ(s.status(id), "COMPLETED");
  s.verify();
}

TEST(signals, a_migration_follows_the_new_name) {
  FaceFixture s;
  s.upload(late_wait(R"("signal":"paid",)"));
  std::string id = start(s, "k");
  s.finish("j");
  s.upload(late_wait(R"("signal":"settled",)"));
  s.post("/pawl/v1/processes/instances/" + id + "/migrate", R"({"reason":"r","version":2})");
  EXPECT_EQ(s.last_status, 200);
  send(s, "k");
  EXPECT_EQ(s.last_status, 202);
  s.post(kSignals, R"({"name":"settled","correlationKey":"k"})");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(s.status(id), "COMPLETED");
  s.verify();
}

TEST(signals, bad_ones_are_refused) {
  FaceFixture s;
  for (const auto& [more, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"("correlationKey":"x",)", "correlationKey needs a signal"},
           {R"("signal":"a","correlationKey":"1 +",)", "correlationKey is not an expression"},
           {R"("signal":1,)", "signal must be a string"}}) {
    json::Value answer = s.post("/v1/definitions", late_wait(more));
    EXPECT_EQ(s.last_status, 400);
    EXPECT_NE(answer.string_or("reason").find(words), std::string::npos) << json::print(answer);
  }
  for (const char* body :
       {R"({})", R"({"name":""})", R"({"name":"a","ttl":"soon"})", R"({"name":"a","ttl":"P2Y"})",
        R"({"name":"a","variables":[1]})", R"({"name":"a","correlationKey":1})", "[1]"}) {
    s.post(kSignals, body);
    EXPECT_EQ(s.last_status, 400) << body;
  }
  s.post(kSignals, R"({"name":"a","correlationKey":")" + std::string(1025, 'x') + "\"}");
  EXPECT_EQ(s.last_status, 400);
  s.upload(late_wait(R"("signal":"paid","correlationKey":"list",)"));
  std::string id = start(s, "", R"({"list":[1]})");
  s.finish("j");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("CorrelationKeyInvalid"), std::string::npos);
  s.verify();
}

}  // namespace
}  // namespace pawl::processes

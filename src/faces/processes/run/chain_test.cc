// Chained workflows, and the limits of a turn.

#include "faces/processes/face_fixture_test.h"
#include "faces/processes/limits.h"

namespace pawl::processes {
namespace {

TEST(processes, a_chained_workflow_starts_in_the_same_frame) {
  FaceFixture s;
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

TEST(processes, a_long_chain_continues_in_the_next_turn) {
  FaceFixture s;
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

TEST(processes, a_cycle_of_workflows_fails_at_the_chain_limit) {
  FaceFixture s;
  s.upload(definition("a", kEnd, R"("autoStartNextWorkflow":true,"nextWorkflowId":"a",)"));
  s.start("a");
  EXPECT_EQ(s.get("/v1/instances?status=COMPLETED").find("total")->as_int64(),
            static_cast<int64_t>(kChainInARow) + 1);
  json::Value failed = s.get("/v1/instances?status=FAILED");
  ASSERT_EQ(failed.find("total")->as_int64(), 1);
  EXPECT_NE(failed.find("items")->array()[0].string_or("failureReason").find("ChainLimitReached"),
            std::string::npos);
}

TEST(processes, a_chain_waits_for_the_upload_of_its_next_workflow) {
  FaceFixture s;
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

TEST(processes, a_loop_without_a_wait_fails_at_the_step_limit) {
  FaceFixture s;
  s.upload(definition(
      "a",
      R"({"id":"t","name":"t","type":"TRANSFORMATION","transformations":{"x":1},"nextStep":"d"},{"id":"d","name":"d","type":"DECISION","conditionalNextSteps":{"x == 1":"t","x == 2":"end"}},)" +
          kEnd));
  std::string id = s.start("a");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("StepLimitReached"), std::string::npos) << s.reason(id);
  EXPECT_EQ(s.status(s.start("a", R"({"y":1})")), "FAILED") << "the server goes on";
}

TEST(processes, the_output_of_expressions_is_limited) {
  FaceFixture s;
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
  FaceFixture s;
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

TEST(processes, a_thousand_branches_reach_their_join) {
  FaceFixture s;
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

}  // namespace
}  // namespace pawl::processes

// Definitions: what is refused when they are uploaded, warnings, and versions.

#include "faces/processes/definition/shapes.h"
#include "faces/processes/definition/steps.h"
#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

TEST(processes, a_decision_table_refuses_any_retry_count) {
  FaceFixture s;
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

TEST(processes, the_row_of_the_type_names_all_step_types) {
  std::set<std::string_view> rows, types;
  for (std::string_view name : document::kStep["type"].choices)
    rows.insert(name);
  for (const StepType& type : step_types())
    types.insert(type.name);
  EXPECT_EQ(rows, types);
}

TEST(processes, all_problems_are_reported_together) {
  FaceFixture s;
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
  FaceFixture s;
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

TEST(processes, branch_order_makes_a_version_and_member_order_does_not) {
  FaceFixture s;
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

TEST(processes, a_malformed_duration_is_reported_with_all_problems) {
  FaceFixture s;
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

TEST(processes, a_removed_member_does_not_hide_other_problems) {
  FaceFixture s;
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

TEST(processes, a_timer_that_overflows_is_warned_about) {
  FaceFixture s;
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

TEST(processes, a_timer_that_leaves_its_branch_is_warned_about) {
  FaceFixture s;
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

TEST(processes, impossible_versions_are_not_found) {
  FaceFixture s;
  s.upload(definition("a", kEnd));
  for (const char* version : {"0", "-1", "2", "99999999999", "99999999999999999999"}) {
    s.get("/v1/definitions/a/versions/" + std::string(version));
    EXPECT_EQ(s.last_status, 404) << version;
  }
  s.get("/v1/definitions/a/versions/one");
  EXPECT_EQ(s.last_status, 400);
}

}  // namespace
}  // namespace pawl::processes

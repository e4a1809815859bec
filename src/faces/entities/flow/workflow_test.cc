#include "faces/entities/flow/workflow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "json/text.h"

namespace pawl::entities {
namespace {

Result<WorkflowSet> import(const WorkflowSet& stored, const std::string& text) {
  auto v = json::parse(text);
  CHECK(v);
  return import_workflows(stored, *v);
}

std::string workflow(const std::string& name, const std::string& states,
                     const std::string& initial = "A") {
  return R"({"version":"1","name":")" + name + R"(","initialState":")" + initial +
         R"(","states":)" + states + "}";
}

std::string reason(const std::string& states) {
  auto flows = import({}, R"({"workflows":[)" + workflow("w", states) + "]}");
  return flows ? "" : flows.error().reason + ": " + flows.error().message;
}

TEST(workflow, unguarded_automated_cycles_are_refused) {
  EXPECT_NE(
      reason(
          R"({"A":{"transitions":[{"name":"t","next":"B"}]},"B":{"transitions":[{"name":"u","next":"A"}]}})")
          .find("A -> B -> A"),
      std::string::npos);
  EXPECT_NE(reason(R"({"A":{"transitions":[{"name":"t","next":"A"}]}})"), "");
  EXPECT_NE(
      reason(
          R"({"A":{},"X":{"transitions":[{"name":"t","next":"Y"}]},"Y":{"transitions":[{"name":"t","next":"X"}]}})"),
      "");
  EXPECT_EQ(reason(R"({"A":{"transitions":[{"name":"t","next":"A","manual":true}]}})"), "");
  EXPECT_EQ(reason(R"({"A":{"transitions":[{"name":"t","next":"A","disabled":true}]}})"), "");
  EXPECT_EQ(reason(R"({"A":{"transitions":[{"name":"t","next":"A","schedule":{"delayMs":5}}]}})"),
            "");
}

TEST(workflow, other_words_for_external_are_exported_as_written) {
  auto imported = [](const std::string& type) {
    return import({}, R"({"workflows":[)" +
                          workflow("w", R"({"A":{"transitions":[{"name":"t","next":"A",)"
                                        R"("manual":true,"processors":[{"type":")" +
                                            type + R"(","name":"p"}]}]}})") +
                          "]}");
  };
  for (std::string type : {"EXTERNAL", "external", "External", "calculator", "FUNCTION"}) {
    auto flows = imported(type);
    ASSERT_TRUE(flows) << type;
    EXPECT_NE(json::print(flows->definitions[0]).find(R"("type":")" + type + "\""),
              std::string::npos);
  }
  for (std::string type : {"Calculator", "function", "INTERNAL", "EXTERNA"})
    EXPECT_EQ(imported(type).error().reason, "VALIDATION_FAILED") << type;
}

TEST(workflow, a_state_that_is_null_has_no_transitions) {
  EXPECT_EQ(reason(R"({"A":null})"), "");
  EXPECT_TRUE(reason(R"({"A":[]})").starts_with("BAD_REQUEST"));
}

TEST(workflow, workflows_that_can_never_run_are_refused) {
  EXPECT_TRUE(reason(R"({"B":{}})").starts_with("VALIDATION_FAILED"));
  EXPECT_TRUE(reason(R"({"A":{"transitions":[{"name":"t","next":"NOWHERE","manual":true}]}})")
                  .starts_with("VALIDATION_FAILED"));
  EXPECT_TRUE(
      reason(
          R"({"A":{"transitions":[{"name":"t","next":"A","manual":true,"processors":[{"type":"FOO","name":"p"}]}]}})")
          .starts_with("VALIDATION_FAILED"));
  EXPECT_TRUE(
      reason(
          R"({"A":{"transitions":[{"name":"t","next":"A","manual":true,"processors":[{"type":"EXTERNAL","name":"p","startNewTxOnDispatch":true}]}]}})")
          .starts_with("VALIDATION_FAILED"));
  EXPECT_TRUE(reason(R"({"A":{"transitions":[{"name":5}]}})").starts_with("BAD_REQUEST"));
}

TEST(workflow, definitions_of_newer_clients_are_accepted) {
  const std::string states =
      R"({"A":{"transitions":[{"name":"t","next":"A","manual":true,"processors":[{"type":"externalized","name":"p","config":{},"annotations":{"p":1}}],"criterionAnnotations":{"c":[2]}}]}})";
  EXPECT_EQ(reason(states), "");
  WorkflowSet flows = *import({}, R"({"workflows":[)" + workflow("a", states) + "]}");
  EXPECT_NE(json::print(flows.definitions).find(R"("type":"externalized")"), std::string::npos);
  EXPECT_NE(json::print(flows.definitions).find(R"("annotations":{"p":1})"), std::string::npos);
  EXPECT_NE(json::print(flows.definitions).find(R"("criterionAnnotations":{"c":[2]})"),
            std::string::npos);
  EXPECT_TRUE(reason(R"({"A":{"annotations":"text"}})").starts_with("VALIDATION_FAILED"));
  EXPECT_TRUE(reason(R"({"A":{"annotations":{"x":")" + std::string(70'000, 'x') + R"("}}})")
                  .starts_with("VALIDATION_FAILED"));
  EXPECT_EQ(reason(R"({"A":{"annotations":null}})"), "");
}

TEST(workflow, modes_merge_replace_and_activate) {
  const std::string plain = R"({"A":{},"B":{}})";
  WorkflowSet two = *import({}, R"({"importMode":"REPLACE","workflows":[)" + workflow("a", plain) +
                                    "," + workflow("b", plain) + "]}");
  auto names = [](const WorkflowSet& f) {
    std::string out;
    for (const Workflow& w : f.workflows)
      out += w.name + (w.active ? "+" : "-") + w.initial_state + " ";
    return out;
  };
  EXPECT_EQ(names(*import(two, R"({"workflows":[)" + workflow("c", plain) + "," +
                                   workflow("a", plain, "B") + "]}")),
            "a+B b+A c+A ");
  EXPECT_EQ(names(*import(two, R"({"importMode":"activate","workflows":[)" +
                                   workflow("b", plain, "B") + "]}")),
            "a-A b+B ");
  EXPECT_EQ(names(*import(two, R"({"importMode":"REPLACE","workflows":[]})")), "");
  EXPECT_EQ(import(two, R"({"importMode":"UPSERT","workflows":[]})").error().reason, "BAD_REQUEST");
}

TEST(workflow, definitions_read_back_as_they_are_exported) {
  WorkflowSet flows = *import(
      {},
      R"({"workflows":[{"version":"1","name":"w","desc":"","initialState":"A","criterion":null,"annotations":{"x":1},"states":{"A":{"transitions":[
    {"name":"t","next":"A","manual":true,"disabled":false,"processors":[{"type":"EXTERNAL","name":"p","executionMode":"COMMIT_BEFORE_DISPATCH","startNewTxOnDispatch":true,
    "config":{"attachEntity":false,"responseTimeoutMs":0,"durable":true}}]}]}}}]})");
  EXPECT_EQ(
      json::print(flows.definitions),
      R"([{"version":"1","name":"w","initialState":"A","active":true,"criterion":null,"states":{"A":{"transitions":[{"name":"t","next":"A","manual":true,"processors":[{"type":"EXTERNAL","name":"p","executionMode":"COMMIT_BEFORE_DISPATCH","startNewTxOnDispatch":true,"config":{"durable":true}}]}]}},"annotations":{"x":1}}])");
  WorkflowSet again = *load_workflows(flows.definitions);
  EXPECT_EQ(json::print(again.definitions), json::print(flows.definitions));
  const Processor& p = again.workflows[0].states["A"][0].processors[0];
  EXPECT_TRUE(p.start_new_tx && p.durable && p.mode == Mode::commit_before_dispatch);
}

TEST(workflow, ten_thousand_states_are_the_limit) {
  auto chain = [](int n) {
    std::string states = "{";
    for (int i = 0; i < n; ++i)
      states += fmt::format(R"("{}":{{"transitions":[{{"name":"t","next":"{}"}}]}},)",
                            i ? "S" + std::to_string(i) : "A", "S" + std::to_string(i + 1));
    return states + fmt::format(R"("S{}":{{}}}})", n);
  };
  EXPECT_EQ(reason(chain(9'999)), "");
  EXPECT_NE(reason(chain(10'001)), "");
}

}  // namespace
}  // namespace pawl::entities

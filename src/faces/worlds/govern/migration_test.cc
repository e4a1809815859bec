// Which cells an apply passes through `migrate`, and what `migrate` gets. Proposals are whole
// manifests whose hashes the server computes.

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using cbor::Value;
using Words = std::vector<std::string>;

// Notes the workflow and the log of each state that it migrates, and appends the word "new".
struct Marking final : NativeModule {
  explicit Marking(Words& to) : calls(to) {}
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override {
    if (entrypoint != "migrate") return Scripted().step(entrypoint, input);
    TRY(StepInput in, decode_input(input));
    TRY(Value event, cbor::decode(in.event.value));
    TRY(Value state, cbor::decode(*in.state));
    cbor::Array log = state.find("log")->array();
    calls.push_back(std::string(event.text_or("workflow")) + " " + in.event.schema + " " +
                    std::to_string(log.size()));
    log.push_back(Value("new"));
    return encode_output(
        {cbor::encode(cbor::Map{{"log", Value(std::move(log))}}), {}, {}, {}, false});
  }
  bool migrates() const override { return true; }
  Words& calls;
};

json::Value& node(json::Value& air, std::string_view name) {
  for (json::Value& n : air.array())
    if (n.string_or("name") == name) return n;
  ADD_FAILURE() << name;
  return air.array()[0];
}

struct MigrateTest : testing::Test {
  MigrateTest() {
    for (const char* name : {"t/scripted@1", "t/other@1"})
      stage.modules.add(name, std::make_unique<Marking>(calls));
    auto made = stage.create("w", air);
    if (!made) ADD_FAILURE() << made.error().message;
    EXPECT_TRUE(stage.send("w", "t/Do@1", tell("a")));
    EXPECT_TRUE(stage.send("w", "t/Half@1", tell("h")));
  }
  ~MigrateTest() override { EXPECT_EQ(stage.verify_all().difference, ""); }

  Result<json::Value> propose() {
    json::Array nodes = air.array();
    json::Value manifest = nodes.back();
    nodes.pop_back();
    const json::Value patch =
        json::object({{"manifest", manifest}, {"nodes", json::Value(std::move(nodes))}});
    return stage.govern("w", {.action = "propose", .patch = json::print(patch)});
  }
  // Proposes `air` as it is now, and applies it.
  void apply() {
    auto proposed = propose();
    ASSERT_TRUE(proposed) << proposed.error().message;
    const uint64_t id = *proposed->find("proposal_id")->as_uint64();
    for (const char* action : {"shadow", "approve", "apply"}) {
      calls.clear();  // the shadow run migrates as well
      auto done = stage.govern(
          "w", {.action = action, .proposal = id, .approver = "alice", .strict = false});
      ASSERT_TRUE(done) << action << ": " << done.error().message;
    }
  }
  Words log(const std::string& workflow, const std::string& id) {
    return stage.log("w", workflow, key_of(id));
  }
  Words calls;  // of the last action
  Stage stage;
  json::Value air = test_air();
};

TEST_F(MigrateTest, a_change_of_effects_or_routes_migrates_nothing) {
  node(air, "t/main@1").find("effects_emitted")->array().pop_back();
  node(air, "t/half@1").object().set("context", "sys/WorkflowContext@1");
  apply();
  EXPECT_EQ(calls, Words());
  EXPECT_EQ(log("t/main@1", "a"), Words{"Do"});
}

TEST_F(MigrateTest, cells_of_a_workflow_with_another_module_are_migrated) {
  json::Value other = node(air, "t/scripted@1");
  other.object().set("name", "t/other@1");
  air.array().insert(air.array().begin(), other);
  air.array().back().find("modules")->array().push_back(json::object({{"name", "t/other@1"}}));
  node(air, "t/half@1").find("impl")->object().set("module", "t/other@1");
  apply();
  EXPECT_EQ(calls, Words{"t/half@1 t/State@1 1"});
  EXPECT_EQ(log("t/half@1", "h"), (Words{"Half", "new"}));
  EXPECT_EQ(log("t/main@1", "a"), Words{"Do"});
}

TEST_F(MigrateTest, cells_whose_state_has_another_type_are_migrated_under_the_same_module) {
  const json::Value type =
      *json::parse(R"({"record":{"log":{"list":{"text":{}}},"more":{"option":{"text":{}}}}})");
  node(air, "t/State@1").object().set("type", type);
  apply();
  EXPECT_EQ(calls, (Words{"t/half@1 t/State@1 1", "t/main@1 t/State@1 1"}));
  EXPECT_EQ(log("t/main@1", "a"), (Words{"Do", "new"}));
}

TEST_F(MigrateTest, a_proposal_without_hashes_takes_them_from_its_nodes_and_the_active_manifest) {
  // Only the changed definition comes along: the other names stand for what the world has.
  json::Value schema = node(air, "t/Lonely@1");
  schema.object().set("type", *json::parse(R"({"nat":{}})"));
  const json::Value manifest = air.array().back();
  air = json::Value(json::Array{schema, manifest});
  apply();
  EXPECT_EQ(calls, Words());
  EXPECT_TRUE(stage.send("w", "t/Lonely@1", Value(7)));
  EXPECT_TRUE(stage.send("w", "t/Do@1", tell("a")));
  air.array().back().find("schemas")->array().push_back(json::object({{"name", "t/Unknown@1"}}));
  const Error refused = propose().error();
  EXPECT_NE(refused.message.find("defschema 't/Unknown@1' has no hash"), std::string::npos)
      << refused.message;
}

TEST_F(MigrateTest, a_world_with_module_names_of_the_original_runs) {
  json::Value lenient = *json::parse([&] {
    std::string text = json::print(test_air());
    for (size_t at; (at = text.find("t/scripted@1")) != std::string::npos;)
      text.replace(at, 12, "demo/SafeUpgrade@2_wasm");
    return text;
  }());
  stage.modules.add("demo/SafeUpgrade@2_wasm", std::make_unique<Scripted>());
  auto made = stage.create("lenient", lenient);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(stage.send("lenient", "t/Do@1", tell("a")));
  EXPECT_EQ(stage.log("lenient", "t/main@1", key_of("a")), Words{"Do"});
}

}  // namespace
}  // namespace pawl::worlds

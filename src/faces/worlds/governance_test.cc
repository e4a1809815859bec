#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

struct Governance : testing::Test {
  Governance() {
    auto made = stage.create("w", test_air());
    if (!made) ADD_FAILURE() << made.error().message;
  }
  ~Governance() override { EXPECT_EQ(stage.verify_all().difference, ""); }
  Result<json::Value> go(const std::string& id, const std::optional<StepOutput>& out = {}, const std::string& schema = "t/Do@1") { return stage.send("w", schema, tell(id, out)); }
  std::string manifest() { return std::string(json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)->string_or("manifest_hash")); }
  std::string patch(const std::string& steps) { return R"({"base_manifest_hash":")" + manifest() + R"(","patches":[)" + steps + "]}"; }
  Result<json::Value> propose(const std::string& steps) { return stage.govern("w", {.action = "propose", .patch = patch(steps), .description = "d"}); }
  Result<json::Value> act(std::string action, uint64_t id, bool strict = true) { return stage.govern("w", {.action = std::move(action), .proposal = id, .approver = "alice", .strict = strict}); }
  const std::string add = R"({"add_def":{"kind":"defschema","node":{"$kind":"defschema","name":"t/New@1","type":{"nat":{}}}}})";
  Stage stage;
};

// case 99, case 103, case 104, case 105, case 107, case 108, case 110
TEST_F(Governance, goes_from_propose_over_shadow_and_approve_to_apply) {
  ASSERT_TRUE(propose(add));
  EXPECT_EQ(act("approve", 0).error().message, "proposal 0 is in state Submitted, expected shadowed");
  EXPECT_EQ(act("apply", 0).error().message, "proposal 0 is in state Submitted, expected approved");
  EXPECT_EQ(act("apply", 99).error().reason, "governance.proposal_missing");
  EXPECT_EQ(act("apply", 99).error().message, "proposal 99 not found");
  ASSERT_TRUE(act("shadow", 0));
  ASSERT_TRUE(act("approve", 0));
  const std::string before = manifest();
  auto applied = act("apply", 0);
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_NE(manifest(), before);
  EXPECT_EQ(applied->string_or("manifest_hash"), manifest());
  EXPECT_EQ(act("apply", 0).error().reason, "governance.proposal_applied");
  EXPECT_EQ(act("shadow", 0).error().message, "proposal 0 already applied");
  EXPECT_EQ(stage.kinds("w"), (std::vector<std::string>{"manifest", "snapshot", "governance", "governance", "governance", "manifest", "governance"}));
  ASSERT_TRUE(stage.send("w", "t/New@1", Value(7)));  // the new schema is known
}

// case 106, case 109
TEST_F(Governance, a_rejected_proposal_cannot_be_applied_and_equal_patches_have_equal_hashes) {
  auto one = propose(add), two = propose(add);
  EXPECT_EQ(one->string_or("patch_hash"), two->string_or("patch_hash"));
  EXPECT_EQ(two->find("proposal_id")->as_int64(), 1);
  ASSERT_TRUE(act("shadow", 1));
  ASSERT_TRUE(act("reject", 1));
  EXPECT_EQ(act("apply", 1).error().message, "proposal 1 is in state Rejected, expected approved");
}

TEST_F(Governance, what_a_proposal_would_run_by_is_no_garbage) {
  auto put = [&](const Bytes& bytes) { return std::string(stage.say("put_blob", bytes)->string_or("hash")); };
  const std::string given = put("given wasm"), stored = put("stored wasm"), nobodys = put("nobody's");
  auto module = [](const std::string& name, const std::string& artifact) { return R"({"$kind":"defmodule","name":")" + name + R"(","runtime":{"kind":"wasm","artifact":{"kind":"wasm_module","hash":")" + artifact + R"("}}})"; };
  auto node = parse_node(*json::parse(module("t/stored@1", stored)));
  const std::string ref = put(cbor::canonical(to_value(*node, true)));
  ASSERT_TRUE(propose(R"({"add_def":{"kind":"defmodule","node":)" + module("t/given@1", given) + R"(}},{"set_manifest_refs":{"add":[{"kind":"defmodule","name":"t/stored@1","hash":")" + ref + R"("}]}})"));
  Bytes no_grace;
  Writer(no_grace).sint(0);
  stage.clock += kSecond;
  ASSERT_TRUE(stage.say("collect", no_grace));
  auto kept = [&](const std::string& hash) { return stage.read(blob_key("t", *parse_hash(hash)))->exists(); };
  EXPECT_TRUE(kept(given));
  EXPECT_TRUE(kept(stored));
  EXPECT_TRUE(kept(ref));
  EXPECT_FALSE(kept(nobodys));
  ASSERT_TRUE(act("shadow", 0));
  ASSERT_TRUE(act("reject", 0));
  ASSERT_TRUE(stage.say("collect", no_grace));
  EXPECT_FALSE(kept(given));
}

TEST_F(Governance, a_patch_is_validated_as_a_whole) {
  auto bad = propose(R"({"add_def":{"kind":"defworkflow","node":{"$kind":"defworkflow","name":"t/x@1","state":"t/None@1","event":"t/Do@1","effects_emitted":[],"impl":{"module":"t/scripted@1","entrypoint":"step"}}}})");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "manifest validation error: schema 't/None@1' not found");
}

// case 93, case 97, case 98, case 100, case 101, case 102, case 209
TEST_F(Governance, apply_waits_for_what_is_in_flight_and_says_what_blocks) {
  ASSERT_TRUE(go("a", output({"1"}, {timer(5)})));
  ASSERT_TRUE(propose(add));
  ASSERT_TRUE(act("shadow", 0));
  ASSERT_TRUE(act("approve", 0));
  const size_t records = stage.kinds("w").size();
  auto blocked = act("apply", 0, false);
  EXPECT_EQ(blocked.error().reason, "governance.apply_inflight");
  EXPECT_EQ(blocked.error().message,
            "manifest apply blocked: in-flight runtime state exists (plans=1, waiting_events=1, pending_plan_receipts=0, pending_workflow_receipts=1, queued_effects=0, workflow_queue_pending=false)");
  EXPECT_NE(blocked.error().detail.find("t/main@1::d9d9f76161"), std::string::npos);
  EXPECT_EQ(stage.kinds("w").size(), records);
  ASSERT_TRUE(stage.settle("w", stage.pending("w")[0].intent, Value(cbor::Map{{"delivered_at_ns", 9}})));
  auto strict = act("apply", 0, true);
  EXPECT_NE(strict.error().message.find("world w is not strictly quiescent for manifest apply (non_terminal_workflow_instances=1"), std::string::npos);
  ASSERT_TRUE(act("apply", 0, false));
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")), (std::vector<std::string>{"1", "Receipt"}));
}

// case 111, case 112, case 113, case 119, case 120
TEST_F(Governance, a_shadow_run_sees_the_live_world_and_leaves_it_alone) {
  ASSERT_TRUE(go("a", output({"1"})));
  ASSERT_TRUE(propose(add));
  const size_t open = stage.open.size();
  Govern g{.action = "shadow"};
  g.seeds.push_back({"t/Do@1", cbor::encode(tell("a", output({"2"}, {timer(77)}))), {}});
  auto report = stage.govern("w", g);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->find("effects_predicted")->array()[0].string_or("op"), "sys/timer.set@1");
  EXPECT_EQ(report->find("pending_workflow_receipts")->array().size(), 1u);
  EXPECT_EQ(report->find("workflow_instances")->array()[0].string_or("status"), "waiting");
  EXPECT_EQ(report->find("state_deltas")->array()[0].string_or("instance_id"), "t/main@1::d9d9f76161");
  EXPECT_EQ(json::print(*report->find("state_deltas")->array()[0].find("after")), R"({"log":["2","Receipt"]})");
  EXPECT_EQ(report->find("module_effect_allowlists")->array()[4].find("effects_emitted")->array()[0].string(), "sys/blob.get@1");
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")), std::vector<std::string>{"1"});
  EXPECT_EQ(stage.open.size(), open);
  EXPECT_EQ(stage.kinds("w").back(), "governance");
  EXPECT_EQ(stage.head("w").inflight, 0u);
}

// case 118
TEST_F(Governance, proposals_outlive_snapshots_and_forks_follow_an_apply) {
  ASSERT_TRUE(propose(add));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  ASSERT_TRUE(act("shadow", 0));
  ASSERT_TRUE(act("approve", 0));
  ASSERT_TRUE(act("apply", 0));
  ASSERT_TRUE(stage.send("w", "t/New@1", Value(7)));
  auto r = stage.http("POST", "/v1/worlds/w/fork", R"({"world_id":"f"})");
  ASSERT_EQ(r.status, 201) << r.body;
  EXPECT_EQ(stage.dump("f"), stage.dump("w"));
}

TEST_F(Governance, a_fork_before_or_over_an_apply_finds_its_definitions_after_garbage_is_collected) {
  const uint64_t before = stage.head("w").height;
  ASSERT_TRUE(propose(add));
  ASSERT_TRUE(act("shadow", 0));
  ASSERT_TRUE(act("approve", 0));
  ASSERT_TRUE(act("apply", 0));
  const uint64_t applied = stage.head("w").height;
  ASSERT_TRUE(propose(R"({"set_manifest_refs":{"remove":[{"kind":"defschema","name":"t/New@1"}]}})"));
  ASSERT_TRUE(act("shadow", 1));
  ASSERT_TRUE(act("approve", 1));
  ASSERT_TRUE(act("apply", 1));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  Bytes no_grace;
  Writer(no_grace).sint(0);
  stage.clock += kSecond;
  ASSERT_TRUE(stage.say("collect", no_grace));
  for (uint64_t height : {before, applied, stage.head("w").height}) {
    const std::string id = "f" + std::to_string(height);
    auto r = stage.http("POST", "/v1/worlds/w/fork", R"({"world_id":")" + id + R"(","height":)" + std::to_string(height) + "}");
    EXPECT_EQ(r.status, 201) << r.body;
    EXPECT_EQ(stage.send(id, "t/New@1", Value(7)).has_value(), height == applied);
  }
}

// A state schema that grows a field, with and without a module that knows how.
struct Migrating final : NativeModule {
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override {
    if (entrypoint != "migrate") return Scripted().step(entrypoint, input);
    TRY(StepInput in, decode_input(input));
    TRY(Value old, cbor::decode(*in.state));
    return encode_output({cbor::encode(cbor::Map{{"log", *old.find("log")}, {"count", uint64_t{old.find("log")->array().size()}}}), {}, {}, {}, false});
  }
  bool migrates() const override { return true; }
};

TEST_F(Governance, states_are_migrated_by_the_module_or_the_apply_is_refused) {
  ASSERT_TRUE(go("a"));
  ASSERT_TRUE(go("a"));
  stage.modules.add("t/next@1", std::make_unique<Migrating>());
  const json::Value m = *json::parse(stage.http("GET", "/v1/worlds/w/manifest").body);
  auto hash = [&](std::string_view list, std::string_view name) {
    for (const json::Value& ref : m.find("manifest")->find(list)->array())
      if (ref.string_or("name") == name) return std::string(ref.string_or("hash"));
    return std::string();
  };
  const std::string schema = R"({"replace_def":{"kind":"defschema","name":"t/State@1","pre_hash":")" + hash("schemas", "t/State@1") +
                             R"(","new_node":{"$kind":"defschema","name":"t/State@1","type":{"record":{"log":{"list":{"text":{}}},"count":{"nat":{}}}}}}})";
  ASSERT_TRUE(propose(schema));
  auto report = act("shadow", 0);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->find("migration_failures")->array().size(), 1u);
  ASSERT_TRUE(act("approve", 0));
  EXPECT_EQ(act("apply", 0, false).error().reason, "governance.migrate");

  std::string main;
  const json::Value air = test_air();
  for (const json::Value& node : air.array())
    if (node.string_or("name") == "t/main@1") {
      json::Value next = node;
      *next.find("impl")->find("module") = "t/next@1";
      main = json::print(next);
    }
  const std::string steps = schema + R"(,{"add_def":{"kind":"defmodule","node":{"$kind":"defmodule","name":"t/next@1","runtime":{"kind":"wasm","artifact":{"kind":"wasm_module"}}}}},)" +
                            R"({"replace_def":{"kind":"defworkflow","name":"t/main@1","pre_hash":")" + hash("workflows", "t/main@1") + R"(","new_node":)" + main + "}}";
  ASSERT_TRUE(propose(steps));
  ASSERT_TRUE(act("shadow", 1));
  ASSERT_TRUE(act("approve", 1));
  auto applied = act("apply", 1, false);
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(*stage.cell("w", "t/main@1", key_of("a")).state, cbor::canonical(cbor::Map{{"log", cbor::Array{Value("Do"), Value("Do")}}, {"count", 2}}));
}

}  // namespace
}  // namespace pawl::worlds

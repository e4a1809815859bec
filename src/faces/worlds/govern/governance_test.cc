// Governance: propose, shadow, approve and apply, and the migration of cells. The case numbers are
// those of the list of behaviours (see cases_test.cc).

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

struct GovernanceTest : testing::Test {
  GovernanceTest() {
    auto made = stage.create("w", test_air());
    if (!made) ADD_FAILURE() << made.error().message;
  }
  ~GovernanceTest() override { EXPECT_EQ(stage.verify_all().difference, ""); }
  Result<json::Value> go(const std::string& id, const std::optional<StepOutput>& out = {},
                         const std::string& schema = "t/Do@1") {
    return stage.send("w", schema, tell(id, out));
  }
  std::string manifest() {
    return std::string(
        json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)->string_or("manifest_hash"));
  }
  std::string patch(const std::string& steps) {
    return R"({"base_manifest_hash":")" + manifest() + R"(","patches":[)" + steps + "]}";
  }
  Result<json::Value> propose(const std::string& steps) {
    return stage.govern("w", {.action = "propose", .patch = patch(steps), .description = "d"});
  }
  Result<json::Value> act(std::string action, uint64_t id, bool strict = true) {
    return stage.govern(
        "w", {.action = std::move(action), .proposal = id, .approver = "alice", .strict = strict});
  }
  const std::string add =
      R"({"add_def":{"kind":"defschema","node":{"$kind":"defschema","name":"t/New@1","type":{"nat":{}}}}})";
  Stage stage;
};

// case 99, case 103, case 104, case 105, case 107, case 108, case 110
TEST_F(GovernanceTest, a_proposal_is_shadowed_approved_and_applied) {
  ASSERT_TRUE(propose(add));
  EXPECT_EQ(act("approve", 0).error().message,
            "proposal 0 is in state Submitted, expected shadowed");
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
  EXPECT_EQ(stage.kinds("w"),
            (std::vector<std::string>{"manifest", "snapshot", "governance", "governance",
                                      "governance", "manifest", "governance"}));
  ASSERT_TRUE(stage.send("w", "t/New@1", Value(7)));  // the new schema is known
}

// case 106, case 109
TEST_F(GovernanceTest, a_rejected_proposal_cannot_be_applied_and_equal_patches_have_equal_hashes) {
  auto one = propose(add), two = propose(add);
  EXPECT_EQ(one->string_or("patch_hash"), two->string_or("patch_hash"));
  EXPECT_EQ(two->find("proposal_id")->as_int64(), 1);
  ASSERT_TRUE(act("shadow", 1));
  ASSERT_TRUE(act("reject", 1));
  EXPECT_EQ(act("apply", 1).error().message, "proposal 1 is in state Rejected, expected approved");
}

TEST_F(GovernanceTest, the_definitions_and_modules_of_a_proposal_are_kept) {
  auto put = [&](const Bytes& bytes) {
    return std::string(stage.say("put_blob", bytes)->string_or("hash"));
  };
  const std::string given = put("given wasm"), stored = put("stored wasm"),
                    nobodys = put("nobody's");
  auto module = [](const std::string& name, const std::string& artifact) {
    return R"({"$kind":"defmodule","name":")" + name +
           R"(","runtime":{"kind":"wasm","artifact":{"kind":"wasm_module","hash":")" + artifact +
           R"("}}})";
  };
  auto node = parse_node(*json::parse(module("t/stored@1", stored)));
  const std::string ref = put(cbor::canonical(to_value(*node, true)));
  ASSERT_TRUE(propose(
      R"({"add_def":{"kind":"defmodule","node":)" + module("t/given@1", given) +
      R"(}},{"set_manifest_refs":{"add":[{"kind":"defmodule","name":"t/stored@1","hash":")" + ref +
      R"("}]}})"));
  Bytes no_grace;
  Writer(no_grace).sint(0);
  stage.clock += kSecond;
  ASSERT_TRUE(stage.say("collect", no_grace));
  auto kept = [&](const std::string& hash) {
    return stage.read(blob_key("t", *parse_hash(hash)))->exists();
  };
  EXPECT_TRUE(kept(given));
  EXPECT_TRUE(kept(stored));
  EXPECT_TRUE(kept(ref));
  EXPECT_FALSE(kept(nobodys));
  ASSERT_TRUE(act("shadow", 0));
  ASSERT_TRUE(act("reject", 0));
  ASSERT_TRUE(stage.say("collect", no_grace));
  EXPECT_FALSE(kept(given));
}

TEST_F(GovernanceTest, a_patch_is_validated_as_a_whole) {
  auto bad = propose(
      R"({"add_def":{"kind":"defworkflow","node":{"$kind":"defworkflow","name":"t/x@1","state":"t/None@1","event":"t/Do@1","effects_emitted":[],"impl":{"module":"t/scripted@1","entrypoint":"step"}}}})");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "manifest validation error: schema 't/None@1' not found");
}

// case 93, case 97, case 98, case 100, case 101, case 102, case 209
TEST_F(GovernanceTest, apply_is_refused_while_work_is_in_flight) {
  ASSERT_TRUE(go("a", output({"1"}, {timer(5)})));
  ASSERT_TRUE(propose(add));
  ASSERT_TRUE(act("shadow", 0));
  ASSERT_TRUE(act("approve", 0));
  const size_t records = stage.kinds("w").size();
  auto blocked = act("apply", 0, false);
  EXPECT_EQ(blocked.error().reason, "governance.apply_inflight");
  EXPECT_EQ(blocked.error().message,
            "manifest apply blocked: in-flight runtime state exists (plans=1, waiting_events=1, "
            "pending_plan_receipts=0, pending_workflow_receipts=1, queued_effects=0, "
            "workflow_queue_pending=false)");
  EXPECT_NE(blocked.error().detail.find("t/main@1::d9d9f76161"), std::string::npos);
  EXPECT_EQ(stage.kinds("w").size(), records);
  ASSERT_TRUE(
      stage.settle("w", stage.pending("w")[0].intent, Value(cbor::Map{{"delivered_at_ns", 9}})));
  auto strict = act("apply", 0, true);
  EXPECT_NE(strict.error().message.find("world w is not strictly quiescent for manifest apply "
                                        "(non_terminal_workflow_instances=1"),
            std::string::npos);
  ASSERT_TRUE(act("apply", 0, false));
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")), (std::vector<std::string>{"1", "Receipt"}));
}

// case 112, case 113, case 119, case 120
TEST_F(GovernanceTest, a_shadow_run_sees_the_live_world_and_leaves_it_alone) {
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
  EXPECT_EQ(report->find("state_deltas")->array()[0].string_or("instance_id"),
            "t/main@1::d9d9f76161");
  EXPECT_EQ(json::print(*report->find("state_deltas")->array()[0].find("after")),
            R"({"log":["2","Receipt"]})");
  EXPECT_EQ(report->find("module_effect_allowlists")
                ->array()[4]
                .find("effects_emitted")
                ->array()[0]
                .string(),
            "sys/blob.get@1");
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")), std::vector<std::string>{"1"});
  EXPECT_EQ(stage.open.size(), open);
  EXPECT_EQ(stage.kinds("w").back(), "governance");
  EXPECT_EQ(stage.head("w").inflight, 0u);
}

// case 118
TEST_F(GovernanceTest, proposals_are_in_snapshots_and_forks_replay_an_apply) {
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

TEST_F(GovernanceTest, a_fork_across_an_apply_finds_its_definitions_after_collection) {
  const uint64_t before = stage.head("w").height;
  ASSERT_TRUE(propose(add));
  ASSERT_TRUE(act("shadow", 0));
  ASSERT_TRUE(act("approve", 0));
  ASSERT_TRUE(act("apply", 0));
  const uint64_t applied = stage.head("w").height;
  ASSERT_TRUE(
      propose(R"({"set_manifest_refs":{"remove":[{"kind":"defschema","name":"t/New@1"}]}})"));
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
    auto r = stage.http("POST", "/v1/worlds/w/fork",
                        R"({"world_id":")" + id + R"(","height":)" + std::to_string(height) + "}");
    EXPECT_EQ(r.status, 201) << r.body;
    EXPECT_EQ(stage.send(id, "t/New@1", Value(7)).has_value(), height == applied);
  }
}

// A state schema gets another field, with and without a module that migrates.
struct Migrating final : NativeModule {
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override {
    if (entrypoint != "migrate") return Scripted().step(entrypoint, input);
    TRY(StepInput in, decode_input(input));
    TRY(Value old, cbor::decode(*in.state));
    return encode_output(
        {cbor::encode(cbor::Map{{"log", *old.find("log")},
                                {"count", uint64_t{old.find("log")->array().size()}}}),
         {},
         {},
         {},
         false});
  }
  bool migrates() const override { return true; }
};

TEST_F(GovernanceTest, states_are_migrated_by_the_module_or_the_apply_is_refused) {
  ASSERT_TRUE(go("a"));
  ASSERT_TRUE(go("a"));
  stage.modules.add("t/next@1", std::make_unique<Migrating>());
  const json::Value m = *json::parse(stage.http("GET", "/v1/worlds/w/manifest").body);
  auto hash = [&](std::string_view list, std::string_view name) {
    for (const json::Value& ref : m.find("manifest")->find(list)->array())
      if (ref.string_or("name") == name) return std::string(ref.string_or("hash"));
    return std::string();
  };
  const std::string schema =
      R"({"replace_def":{"kind":"defschema","name":"t/State@1","pre_hash":")" +
      hash("schemas", "t/State@1") +
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
  const std::string steps =
      schema +
      R"(,{"add_def":{"kind":"defmodule","node":{"$kind":"defmodule","name":"t/next@1","runtime":{"kind":"wasm","artifact":{"kind":"wasm_module"}}}}},)" +
      R"({"replace_def":{"kind":"defworkflow","name":"t/main@1","pre_hash":")" +
      hash("workflows", "t/main@1") + R"(","new_node":)" + main + "}}";
  ASSERT_TRUE(propose(steps));
  ASSERT_TRUE(act("shadow", 1));
  ASSERT_TRUE(act("approve", 1));
  auto applied = act("apply", 1, false);
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(
      *stage.cell("w", "t/main@1", key_of("a")).state,
      cbor::canonical(cbor::Map{{"log", cbor::Array{Value("Do"), Value("Do")}}, {"count", 2}}));
}

// The report names each failed migration, and none is applied.
struct Migrates final : NativeModule {
  explicit Migrates(StepOutput out) : output(std::move(out)) {}
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override {
    if (entrypoint != "migrate") return Scripted().step(entrypoint, input);
    if (garbage) return Bytes("no envelope");
    return encode_output(output);
  }
  bool migrates() const override { return true; }
  StepOutput output;
  bool garbage = false;
};

struct MigrationTest : GovernanceTest {
  json::Value document() { return *json::parse(stage.http("GET", "/v1/worlds/w/manifest").body); }
  std::string hash(std::string_view list, std::string_view name) {
    const json::Value all = document();
    for (const json::Value& ref : all.find("manifest")->find(list)->array())
      if (ref.string_or("name") == name) return std::string(ref.string_or("hash"));
    return {};
  }
  static json::Value node(std::string_view name) {
    const json::Value air = test_air();
    for (const json::Value& n : air.array())
      if (n.string_or("name") == name) return n;
    return {};
  }
  std::string replace(std::string_view kind, std::string_view list, std::string_view name,
                      const json::Value& next) {
    return R"({"replace_def":{"kind":")" + std::string(kind) + R"(","name":")" + std::string(name) +
           R"(","pre_hash":")" + hash(list, name) + R"(","new_node":)" + json::print(next) + "}}";
  }
  static json::Value schema(const std::string& name, const std::string& type) {
    return *json::parse(R"({"$kind":"defschema","name":")" + name + R"(","type":)" + type + "}");
  }
  std::string replace_schema(const std::string& name, const std::string& type) {
    return replace("defschema", "schemas", name, schema(name, type));
  }
  // The error of the only cell in the report, and that of the refused apply.
  std::string why_not(const std::string& steps) {
    auto proposed = propose(steps);
    if (!proposed) return proposed.error().message;
    const uint64_t id = *proposed->find("proposal_id")->as_uint64();
    auto report = act("shadow", id);
    if (!report) return report.error().message;
    const json::Value* failures = report->find("migration_failures");
    EXPECT_TRUE(act("approve", id));
    const std::string before = manifest();
    const Instance cell = stage.cell("w", "t/main@1", key_of("a"));
    auto applied = act("apply", id, false);
    if (applied) return "applied";
    EXPECT_EQ(applied.error().reason, "governance.migrate");
    EXPECT_EQ(manifest(), before);
    EXPECT_EQ(encode(stage.cell("w", "t/main@1", key_of("a"))), encode(cell));
    return failures && failures->array().size() == 1
               ? std::string(failures->array()[0].string_or("error"))
               : "not in the report";
  }
  std::string with_module(std::unique_ptr<Migrates> module) {
    const std::string name = "t/next" + std::to_string(++modules) + "@1";
    json::Value next = node("t/main@1");
    *next.find("impl")->find("module") = name;
    stage.modules.add(name, std::move(module));
    return R"({"add_def":{"kind":"defmodule","node":{"$kind":"defmodule","name":")" + name +
           R"(","runtime":{"kind":"wasm","artifact":{"kind":"wasm_module"}}}}},)" +
           replace("defworkflow", "workflows", "t/main@1", next);
  }
  int modules = 0;
};

TEST_F(MigrationTest, migrate_must_give_a_state_that_fits_and_nothing_else) {
  ASSERT_TRUE(go("a"));
  const Bytes fits = state_of({"new"});
  auto garbage = std::make_unique<Migrates>(StepOutput{});
  garbage->garbage = true;
  EXPECT_TRUE(why_not(with_module(std::move(garbage))).starts_with("invalid workflow output: "));
  EXPECT_EQ(why_not(with_module(std::make_unique<Migrates>(StepOutput{}))),
            "migrate gave no state");
  EXPECT_EQ(why_not(with_module(std::make_unique<Migrates>(StepOutput{cbor::encode(Value(1))}))),
            "value does not conform to schema: expected record/map");
  EXPECT_EQ(why_not(with_module(std::make_unique<Migrates>(StepOutput{fits, {}, {timer(7)}}))),
            "migrate may give a state and neither events nor effects");
  EXPECT_EQ(
      why_not(with_module(std::make_unique<Migrates>(StepOutput{fits, {event_to("t/Do@1", "b")}}))),
      "migrate may give a state and neither events nor effects");
  EXPECT_EQ(
      why_not(with_module(
          std::make_unique<Migrates>(StepOutput{state_of({std::string(kMaxOutputBytes, 'x')})}))),
      "invalid workflow output: workflow exceeded max output bytes per tick: " +
          std::to_string(state_of({std::string(kMaxOutputBytes, 'x')}).size()) + " > 1048576");
  EXPECT_EQ(why_not(with_module(std::make_unique<Migrates>(StepOutput{fits}))), "applied");
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")), std::vector<std::string>{"new"});
}

TEST_F(MigrationTest, a_state_must_fit_referenced_schemas_too) {
  ASSERT_EQ(why_not(R"({"add_def":{"kind":"defschema","node":)" +
                    json::print(schema("t/Words@1", R"({"list":{"text":{}}})")) + "}}," +
                    replace_schema("t/State@1", R"({"record":{"log":{"ref":"t/Words@1"}}})")),
            "applied");
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(why_not(replace_schema("t/Words@1", R"({"list":{"nat":{}}})")),
            "value does not conform to schema: expected nat");
  EXPECT_EQ(why_not(replace_schema("t/Words@1", R"({"set":{"text":{}}})")), "applied");
}

TEST_F(MigrationTest, a_cell_whose_key_no_longer_fits_blocks_the_apply) {
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(why_not(replace_schema("t/Id@1", R"({"uuid":{}})")),
            "value does not conform to schema: expected uuid text 8-4-4-4-12");
  json::Value unkeyed = node("t/main@1");
  unkeyed.object().erase("key_schema");
  const std::string routes = R"({"set_routing_subscriptions":{"pre_hash":")" +
                             std::string(document().string_or("routing_pre_hash")) +
                             R"(","subscriptions":[{"event":"t/Do@1","workflow":"t/main@1"}]}})";
  EXPECT_EQ(why_not(replace("defworkflow", "workflows", "t/main@1", unkeyed) + "," + routes),
            "the workflow is unkeyed now, and the cell has a key");
}

TEST_F(MigrationTest, cells_of_a_workflow_that_comes_back_are_migrated) {
  ASSERT_TRUE(go("a"));
  const std::string routing =
      document().find("manifest")->find("routing")
          ? json::print(*document().find("manifest")->find("routing")->find("subscriptions"))
          : "[]";
  auto route = [&](const std::string& list) {
    return R"({"set_routing_subscriptions":{"pre_hash":")" +
           std::string(document().string_or("routing_pre_hash")) + R"(","subscriptions":)" + list +
           "}}";
  };
  ASSERT_EQ(why_not(route("[]") +
                    R"(,{"remove_def":{"kind":"defworkflow","name":"t/main@1","pre_hash":")" +
                    hash("workflows", "t/main@1") + R"("}})"),
            "applied");
  const std::string again = R"({"add_def":{"kind":"defworkflow","node":)" +
                            json::print(node("t/main@1")) + "}}," + route(routing);
  EXPECT_EQ(
      why_not(again + "," + replace_schema("t/State@1", R"({"record":{"count":{"nat":{}}}})")),
      "value does not conform to schema: record missing field 'count'");
  ASSERT_EQ(why_not(again), "applied");
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")).size(), 2u);
}

// Governance under replay.
struct Replayed : GovernanceTest {
  int fork(const std::string& id, uint64_t height, const std::string& more = {}) {
    auto r = stage.http(
        "POST", "/v1/worlds/w/fork",
        R"({"world_id":")" + id + R"(","height":)" + std::to_string(height) + more + "}");
    EXPECT_EQ(r.status, 201) << r.body;
    return r.status;
  }
  uint64_t epoch(const std::string& id) {
    return *json::parse(stage.http("GET", "/v1/worlds/" + id).body)
                ->find("world_epoch")
                ->as_uint64();
  }
  EmittedEffect emit(const std::string& effect, const Value& params) {
    return {effect, cbor::encode(params), {}, {}};
  }
};

TEST_F(Replayed, a_replay_takes_the_recorded_shadow_report) {
  ASSERT_TRUE(
      go("x", output({"1"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}), {}, {}}})));
  ASSERT_TRUE(go(
      "g",
      output({}, {emit("sys/governance.propose@1",
                       cbor::Map{{"patch", cbor::Map{{"$tag", "patch_doc_json"},
                                                     {"$value", cbor::octets(patch(add))}}}})})));
  ASSERT_TRUE(
      go("g", output({}, {emit("sys/governance.shadow@1", cbor::Map{{"proposal_id", 0}}),
                          emit("sys/governance.shadow@1", cbor::Map{{"proposal_id", 7}})})));
  for (uint64_t height = 2; height <= stage.head("w").height; ++height)
    fork("f" + std::to_string(height), height);
  EXPECT_EQ(stage.dump("f" + std::to_string(stage.head("w").height)), stage.dump("w"));
}

// A world whose main workflow may apply as well, with a module that migrates all states but one.
struct Picky final : NativeModule {
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override {
    if (entrypoint != "migrate") return Scripted().step(entrypoint, input);
    TRY(StepInput in, decode_input(input));
    return encode_output(
        {*in.state == state_of({"never"}) ? std::optional<Bytes>() : state_of({"new"}),
         {},
         {},
         {},
         false});
  }
  bool migrates() const override { return true; }
};

TEST_F(Replayed, a_refused_apply_of_a_workflow_leaves_no_trace) {
  json::Value air = test_air(), next = MigrationTest::node("t/main@1");
  for (json::Value& n : air.array())
    if (n.string_or("name") == "t/main@1") {
      n.find("effects_emitted")->array().push_back(json::Value("sys/governance.apply@1"));
      next = n;
    }
  stage.modules.add("t/picky@1", std::make_unique<Picky>());
  ASSERT_TRUE(stage.create("v", air));
  auto tells = [&](const std::string& id, StepOutput out, bool done = true) {
    out.completed = done;
    EXPECT_TRUE(stage.send("v", "t/Do@1", tell(id, out)));
  };
  auto said = [&] {
    std::vector<std::string> out;
    for (const Value& r : stage.records("v"))
      if (record_kind(r) == "effect_receipt")
        out.push_back(
            std::string(cbor::decode(r.find("payload_cbor")->bytes())->text_or("code", "ok")));
    return out;
  };
  tells("a", output({"old"}));
  tells("b", output({"never"}));
  const json::Value m = *json::parse(stage.http("GET", "/v1/worlds/v/manifest").body);
  std::string hash;
  for (const json::Value& ref : m.find("manifest")->find("workflows")->array())
    if (ref.string_or("name") == "t/main@1") hash = ref.string_or("hash");
  *next.find("impl")->find("module") = "t/picky@1";
  const std::string document =
      R"({"base_manifest_hash":")" + std::string(m.string_or("manifest_hash")) +
      R"(","patches":[{"add_def":{"kind":"defmodule","node":{"$kind":"defmodule","name":"t/picky@1","runtime":{"kind":"wasm","artifact":{"kind":"wasm_module"}}}}},)" +
      R"({"replace_def":{"kind":"defworkflow","name":"t/main@1","pre_hash":")" + hash +
      R"(","new_node":)" + json::print(next) + "}}]}";
  for (const char* action : {"propose", "shadow", "approve"})
    ASSERT_TRUE(stage.govern("v", {.action = action, .patch = document, .approver = "me"}));
  const EmittedEffect apply = emit("sys/governance.apply@1", cbor::Map{{"proposal_id", 0}});
  tells("z", output({}, {apply}), false);  // the workflow that asks is running
  tells("z", output({}));
  tells("c", output({"x"}, {emit("sys/governance.apply@1", cbor::Map{{"proposal_id", 9}}), apply}));
  tells("c", output({"x"}));
  tells("d", output({"x"}, {apply}));
  EXPECT_EQ(said(),
            (std::vector<std::string>{"governance.apply_inflight", "governance.proposal_missing",
                                      "governance.apply_inflight", "governance.migrate"}));
  EXPECT_EQ(stage.log("v", "t/main@1", key_of("a")), std::vector<std::string>{"old"});
  tells("d", output({"x"}));
  tells("b", output({"fine"}));
  tells("e", output({"x"}, {apply}));
  EXPECT_EQ(said().back(), "ok");
  EXPECT_EQ(stage.log("v", "t/main@1", key_of("a")), std::vector<std::string>{"new"});
  for (uint64_t height = 2; height <= stage.head("v").height; ++height) {
    auto r = stage.http("POST", "/v1/worlds/v/fork",
                        R"({"world_id":"v)" + std::to_string(height) + R"(","height":)" +
                            std::to_string(height) + "}");
    ASSERT_EQ(r.status, 201) << r.body;
  }
  EXPECT_EQ(stage.dump("v" + std::to_string(stage.head("v").height)), stage.dump("v"));
}

TEST_F(Replayed, governance_is_refused_while_deliveries_wait) {
  // One cell emits to many, again and again, so that every turn makes records.
  std::vector<Event> many;
  for (int i = 0; i < 200; ++i)
    many.push_back(event_to("t/Deaf@1", std::to_string(i)));
  ASSERT_TRUE(propose(add));
  stage.holds = true;
  ASSERT_TRUE(
      go("a",
         output({}, {},
                std::vector<Event>(
                    10, Event{"t/Half@1", cbor::encode(tell("mid", output({}, {}, many))), {}}))));
  ASSERT_GT(stage.head("w").queued, 0u);
  const uint64_t height = stage.head("w").height;
  for (const auto& refused : {propose(add), act("shadow", 0), act("approve", 0), act("reject", 0)})
    EXPECT_EQ(refused.error().reason, "busy");
  EXPECT_EQ(act("apply", 0).error().reason, "governance.proposal_state");
  EXPECT_EQ(stage.head("w").height, height);
  while (!stage.held.empty())
    stage.deliver_next();
  stage.holds = false;
  ASSERT_TRUE(propose(add));
  fork("f", stage.head("w").height);
  EXPECT_EQ(stage.dump("f"), stage.dump("w"));
}

TEST_F(Replayed, a_fork_at_any_height_has_the_epoch_of_that_height) {
  ASSERT_TRUE(propose(add));
  ASSERT_TRUE(act("shadow", 0));
  ASSERT_TRUE(act("approve", 0));
  ASSERT_TRUE(act("apply", 0));
  const uint64_t last = stage.head("w").height;
  for (uint64_t height = 2; height <= last; ++height) {
    fork("f" + std::to_string(height), height);
    EXPECT_EQ(epoch("f" + std::to_string(height)), height == last ? 2u : 1u);
  }
  EXPECT_EQ(stage.head("f" + std::to_string(last - 1)).height,
            last - 2);  // before the apply, which is two records
  auto again =
      stage.http("POST", "/v1/worlds/f" + std::to_string(last) + "/fork", R"({"world_id":"ff"})");
  EXPECT_EQ(again.status, 201) << again.body;
  EXPECT_EQ(epoch("ff"), 2u);
}

TEST_F(Replayed, a_fork_takes_more_stubs_than_the_step_limit_of_a_turn) {
  const std::vector<EmittedEffect> full(
      kMaxEffects, {"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}), {}, {}});
  for (size_t i = 0; i * kMaxEffects <= kMaxStepsPerTurn; ++i)
    ASSERT_TRUE(go(std::to_string(i), output({}, full)));
  const uint64_t height = stage.head("w").height;
  for (const PendingIntent& open : stage.pending("w"))
    ASSERT_TRUE(stage.settle("w", open.intent, cbor::Map{{"code", 0}}));
  fork("f", height, R"(,"receipts":"stub")");
  EXPECT_EQ(stage.head("f").inflight, 0u);
  EXPECT_EQ(stage.head("f").queued, 0u);
}

TEST_F(Replayed, a_shadow_run_drains_the_events_of_its_seeds) {
  ASSERT_TRUE(
      go("x", output({"1"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}), {}, {}}})));
  ASSERT_TRUE(propose(add));
  StepOutput inner = output({}, {}, std::vector<Event>(16, event_to("t/Deaf@1", "sink")));
  Govern g{.action = "shadow"};
  g.seeds.push_back(
      {"t/Do@1",
       cbor::encode(
           tell("a", output({}, {},
                            std::vector<Event>(
                                80, Event{"t/Half@1", cbor::encode(tell("mid", inner)), {}})))),
       {}});
  g.seeds.push_back({"t/Do@1", cbor::encode(tell("b")), {}});
  auto report = stage.govern("w", g);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->find("seed_errors"), nullptr);
  EXPECT_EQ(report->find("state_deltas")->array().size(),
            5u);  // a, b, mid, sink, and x by its stub
}

}  // namespace
}  // namespace pawl::worlds

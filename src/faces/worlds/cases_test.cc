// Cases of the list of behaviours that no other test covers: steps, effects, receipts, governance.
// The numbers are those of the list; tests/run_worlds.py checks that each is named in some test.

#include "faces/worlds/cases_test.h"

namespace pawl::worlds {
namespace {

json::Value& node(json::Value& air, std::string_view name) {
  for (json::Value& n : air.array())
    if (n.string_or("name") == name) return n;
  ADD_FAILURE() << name;
  return air.array()[0];
}
json::Value& routes(json::Value& air) {
  return *air.array().back().find("routing")->find("subscriptions");
}

// case 29
TEST_F(Case, a_module_without_an_artifact_loads_and_fails_when_it_is_run) {
  json::Value air = test_air();
  node(air, "t/scripted@1").object().set("name", "t/unbuilt@1");
  for (json::Value& n : air.array())
    if (json::Value* impl = n.find("impl"); impl && impl->string_or("module") == "t/scripted@1")
      impl->object().set("module", "t/unbuilt@1");
  air.array().back().find("modules")->array()[0].object().set("name", "t/unbuilt@1");
  make(air);
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(main("a").status, InstanceStatus::failed);
  EXPECT_NE(main("a").failure.find("has no artifact hash"), std::string::npos);
}

// case 34, case 35
TEST_F(Case, effects_emitted_must_be_there_and_may_be_empty) {
  json::Value air = test_air();
  node(air, "t/teller@1").object().erase("effects_emitted");
  EXPECT_FALSE(stage.create("x", air));
  make();
  ASSERT_TRUE(stage.send("w", "t/Tell@1", tell("a")));
  EXPECT_EQ(stage.log("w", "t/teller@1", ""), Words{"Tell"});
}

// case 44, case 69, case 73, case 75
TEST_F(Case, the_receipt_envelope_names_origin_and_outcome) {
  stage.modules.add("t/scripted@1", std::make_unique<Echo>());
  make();
  ASSERT_TRUE(go("a", output({}, {charge(5)})));
  EXPECT_EQ(last("effect_intent").find("origin")->text_or("issuer_ref"), "payments");
  const PendingIntent p = stage.pending("w")[0];
  ASSERT_TRUE(stage.say(
      "receipt",
      encode(SendReceipt{
          "w", {p.intent, "ok", cbor::encode(cbor::Map{{"code", 0}}), 12, Bytes(64, 's')}}),
      effect_id({"t", "w"}, hex(p.intent))));
  const Value event = echoed("a");
  EXPECT_EQ(event.text_or("$tag"), "Receipt");
  const Value& e = *event.find("$value");
  EXPECT_EQ(e.map().size(), 16u);
  EXPECT_EQ(e.text_or("origin_module_id"), "t/main@1");
  EXPECT_EQ(e.text_or("origin_workflow_hash"), p.workflow_hash);
  EXPECT_EQ(e.find("origin_instance_key")->bytes(), key_of("a"));
  EXPECT_EQ(e.text_or("intent_id"), hash_text(p.intent));
  EXPECT_EQ(e.text_or("effect"), "t/charge@1");
  EXPECT_EQ(e.text_or("effect_hash"), p.identity.effect_hash);
  EXPECT_EQ(e.text_or("executor_module"), "sys/builtin_effects@1");
  EXPECT_EQ(e.text_or("executor_module_hash"), p.identity.executor_module_hash);
  EXPECT_EQ(e.text_or("executor_entrypoint"), "charge");
  EXPECT_EQ(e.text_or("params_hash"), hash_text(sha256(p.params)));
  EXPECT_EQ(e.text_or("issuer_ref"), "payments");
  EXPECT_EQ(e.find("receipt_payload")->bytes(), cbor::canonical(cbor::Map{{"code", 0}}));
  EXPECT_EQ(e.text_or("status"), "ok");
  EXPECT_EQ(e.find("emitted_at_seq")->as_uint64(),
            2u);  // the height of the event whose step emitted it
  EXPECT_EQ(e.find("cost_cents")->as_uint64(), 12u);
  EXPECT_EQ(e.find("signature")->bytes(), Bytes(64, 's'));
}

// case 45
TEST_F(Case, a_requested_key_of_any_length_makes_another_intent) {
  make();
  ASSERT_TRUE(go("a", output({}, {timer(5), timer(5, Bytes()), timer(5, Bytes("x")),
                                  timer(5, Bytes(1000, 'y'))})));
  std::set<Bytes> intents, keys;
  for (const PendingIntent& p : stage.pending("w")) {
    intents.insert(p.intent);
    keys.insert(p.requested_key);
  }
  EXPECT_EQ(intents.size(), 4u);
  EXPECT_EQ(keys.size(), 3u);
}

// case 48
TEST_F(Case, only_workflows_open_effects) {
  make();
  for (const char* verb : {"effect", "intent", "open", "emit"})
    EXPECT_EQ(stage.say(verb, "w").error().code, Code::unsupported) << verb;
  for (const char* path : {"/v1/worlds/w/effects", "/v1/worlds/w/intents", "/v1/effects"})
    EXPECT_GE(stage.http("POST", path, "{}").status, 404) << path;
  EXPECT_TRUE(stage.open.empty());
}

// case 52, case 54
TEST_F(Case, the_order_of_map_entries_does_not_change_an_intent) {
  json::Value air = test_air();
  node(air, "t/ChargeReceipt@1")
      .object()
      .set("type", *json::parse(R"({"record":{"code":{"int":{}},"a":{"nat":{}}}})"));
  make(air);
  auto request = [](cbor::Map headers) {
    return EmittedEffect{
        "sys/http.request@1",
        cbor::encode(cbor::Map{
            {"url", "http://x/"}, {"method", "GET"}, {"headers", Value(std::move(headers))}}),
        {},
        {}};
  };
  ASSERT_TRUE(go("a", output({}, {request({{"bb", "1"}, {"a", "2"}}),
                                  request({{"a", "2"}, {"bb", "1"}}), charge(1)})));
  auto pending = stage.pending("w");
  std::set<Bytes> params;
  Bytes intent;
  for (const PendingIntent& p : pending) {
    if (p.identity.effect == "t/charge@1")
      intent = p.intent;
    else
      params.insert(p.params);
  }
  EXPECT_EQ(params.size(), 1u);
  ASSERT_TRUE(stage.settle("w", intent, Value(cbor::Map{{"code", 1}, {"a", 2}})));
  EXPECT_EQ(last("effect_receipt").find("payload_cbor")->bytes(),
            cbor::canonical(cbor::Map{{"a", 2}, {"code", 1}}));
}

// case 56
TEST_F(Case, a_secret_is_recorded_by_its_name_only) {
  json::Value air = test_air();
  node(air, "t/ChargeParams@1")
      .object()
      .set("type",
           *json::parse(
               R"({"record":{"amount":{"nat":{}},"token":{"ref":"sys/TextOrSecretRef@1"}}})"));
  make(air);
  const Value sugar =
      cbor::Map{{"amount", 1},
                {"token", cbor::Map{{"secret", cbor::Map{{"alias", "pay/key"}, {"version", 1}}}}}};
  ASSERT_TRUE(go("a", output({}, {{"t/charge@1", cbor::encode(sugar), {}, {}}})));
  const Value params = *cbor::decode(last("effect_intent").find("params_cbor")->bytes());
  EXPECT_EQ(params.find("token")->text_or("$tag"), "secret");
  EXPECT_EQ(params.find("token")->find("$value")->text_or("alias"), "pay/key");
}

// case 57
TEST_F(Case, every_value_in_the_journal_encodes_to_itself) {
  make();
  ASSERT_TRUE(
      stage.send("w", "t/Do@1", Value(cbor::Map{{"word", "x"}, {"id", "a"}, {"out", Value()}})));
  ASSERT_TRUE(go("b", output({}, {charge(5), timer(7)}, {event_to("t/Tell@1", "x")})));
  for (const PendingIntent& p : stage.pending("w"))
    ASSERT_TRUE(stage.settle("w", p.intent,
                             Value(cbor::Map{{"delivered_at_ns", 9}, {"key", Value()}}),
                             p.identity.effect == "t/charge@1" ? "error" : "ok"));
  size_t seen = 0;
  for (const Value& r : stage.records("w"))
    for (std::string_view field : {"value", "key", "params_cbor", "payload_cbor"}) {
      const Value* v = r.find(field);
      if (!v || v->bytes().empty() ||
          (record_kind(r) == "effect_receipt" && r.text_or("status") == "error"))
        continue;
      EXPECT_EQ(cbor::canonical(*cbor::decode(v->bytes())), v->bytes()) << field;
      ++seen;
    }
  EXPECT_GE(seen, 8u);
}

// case 59
TEST_F(Case, an_emitted_event_of_an_unknown_schema_fails_its_step) {
  make();
  ASSERT_TRUE(go("a", output({"lost"}, {}, {Event{"t/None@1", "\xa0", {}}})));
  EXPECT_EQ(main("a").status, InstanceStatus::failed);
  EXPECT_FALSE(main("a").state);
  EXPECT_NE(last("step_failed").text_or("error_message").find("schema 't/None@1' not found"),
            std::string_view::npos);
}

// case 66
TEST_F(Case, a_receipt_of_an_effect_that_changed_since_is_a_fault) {
  make();
  ASSERT_TRUE(go("a", output({"s"}, {charge(1)})));
  PendingIntent p = stage.pending("w")[0];
  ASSERT_TRUE(lab([&](Turn& turn) -> Result<Bytes> {
    p.identity.effect_hash = kNoHash;
    turn.write(pending_key({"t", "w"}, p.intent), encode(p));
    return Bytes();
  }));
  ASSERT_TRUE(stage.settle("w", p.intent, Value(cbor::Map{{"code", 0}})));
  EXPECT_EQ(log("a"), (Words{"s", "Rejected"}));
  EXPECT_EQ(cbor::decode(last("custom").find("data")->bytes())->text_or("error_message"),
            "receipt effect hash mismatch for 't/charge@1'");
}

// case 64, case 67
TEST_F(Case, a_duplicate_receipt_is_recognised_later) {
  make();
  ASSERT_TRUE(go("first", output({}, {timer(5)})));
  const Bytes intent = stage.pending("w")[0].intent;
  ASSERT_TRUE(stage.settle("w", intent, fired));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(go("c" + std::to_string(i), output({}, std::vector<EmittedEffect>(60, timer(5)))));
    for (const PendingIntent& p : stage.pending("w"))
      ASSERT_TRUE(stage.settle("w", p.intent, fired));
  }
  const uint64_t height = stage.head("w").height;
  auto again = stage.http(
      "POST", "/v1/worlds/w/receipts",
      R"({"intent_hash":")" + hash_text(intent) + R"(","payload":{"delivered_at_ns":1}})");
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_NE(again.body.find("ignored"), std::string::npos);
  EXPECT_EQ(stage.head("w").height, height);
}

// case 70, case 72, case 171: an unkeyed workflow that takes envelopes as they are.
TEST_F(Case, an_unkeyed_workflow_is_one_cell_and_may_take_the_envelope_itself) {
  stage.modules.add("t/scripted@1", std::make_unique<Echo>());
  json::Value air = test_air();
  json::Value& teller = node(air, "t/teller@1");
  teller.object().set("effects_emitted", *json::parse(R"(["t/charge@1"])"));
  node(air, "t/TellEvent@1")
      .object()
      .set(
          "type",
          *json::parse(
              R"({"variant":{"Tell":{"ref":"t/Tell@1"},"Receipt":{"ref":"sys/EffectReceiptEnvelope@1"}}})"));
  json::Value bare = *json::parse(
      R"({"$kind":"defworkflow","name":"t/bare@1","state":"t/State@1","event":"sys/EffectReceiptEnvelope@1","effects_emitted":["t/charge@1"],"impl":{"module":"t/scripted@1","entrypoint":"step"}})");
  air.array().insert(air.array().end() - 1, bare);
  air.array().back().find("workflows")->array().push_back(json::object({{"name", "t/bare@1"}}));
  make(air);
  ASSERT_TRUE(stage.send("w", "t/Tell@1", tell("x", output({}, {charge(1)}))));
  PendingIntent p = stage.pending("w")[0];
  ASSERT_TRUE(stage.settle("w", p.intent, Value(cbor::Map{{"code", 0}})));
  const Value event = *cbor::decode(*unhex(stage.log("w", "t/teller@1", "").back()));
  EXPECT_TRUE(event.find("$value")->find("origin_instance_key")->is_null());
  auto cells = json::parse(stage.http("GET", "/v1/worlds/w/state/t/teller@1/cells").body);
  ASSERT_EQ(cells->find("cells")->array().size(), 1u);
  EXPECT_EQ(cells->find("cells")->array()[0].string_or("key_b64"), "");
  // The event schema of this workflow is the envelope itself, so it is delivered unwrapped.
  ASSERT_TRUE(lab([&](Turn& turn) -> Result<Bytes> {
    p.workflow = "t/bare@1";
    turn.write(pending_key({"t", "w"}, p.intent), encode(p));
    WorldSession session(turn, {"t", "w"}, stage.program->worlds.runtime());
    TRY_OK(session.turn.open());
    TRY_OK(session.ingress.accept_receipt(
        {p.intent, "ok", cbor::encode(cbor::Map{{"code", 0}}), {}, {}}));
    TRY_OK(session.turn.close());
    return Bytes();
  }));
  EXPECT_EQ(cbor::decode(*unhex(stage.log("w", "t/bare@1", "").back()))->text_or("status"), "ok");
}

// case 71
TEST_F(Case, error_and_timeout_are_delivered_with_their_status) {
  stage.modules.add("t/scripted@1", std::make_unique<Echo>());
  make();
  for (const char* status : {"error", "timeout"}) {
    ASSERT_TRUE(go(status, output({}, {charge(1)})));
    ASSERT_TRUE(
        stage.settle("w", stage.pending("w")[0].intent, Value(cbor::Map{{"code", 7}}), status));
    EXPECT_EQ(echoed(status).find("$value")->text_or("status"), status);
  }
}

// case 76
TEST_F(Case, a_rejected_event_names_the_error_and_the_payload_hash) {
  stage.modules.add("t/scripted@1", std::make_unique<Echo>());
  make();
  ASSERT_TRUE(go("a", output({}, {charge(1)})));
  const Bytes payload = cbor::encode(cbor::Map{{"nonsense", 1}});
  ASSERT_TRUE(stage.settle("w", stage.pending("w")[0].intent, Value(cbor::Map{{"nonsense", 1}})));
  const Value e = *echoed("a").find("$value");
  EXPECT_EQ(e.text_or("error_code"), "receipt.invalid_payload");
  EXPECT_EQ(e.text_or("payload_hash"), hash_text(sha256(payload)));
  EXPECT_EQ(e.find("payload_size")->as_uint64(), payload.size());
}

// case 78
TEST_F(Case, a_receipt_of_a_dropped_intent_is_ignored) {
  make();
  ASSERT_TRUE(go("a", output({"s"}, {timer(5), charge(1)}), "t/Half@1"));
  Bytes bad, dropped;
  for (const PendingIntent& p : stage.pending("w"))
    (p.identity.effect == "t/charge@1" ? bad : dropped) = p.intent;
  ASSERT_TRUE(stage.settle("w", bad, Value(cbor::Map{{"code", 0}})));  // no arm takes it
  const uint64_t height = stage.head("w").height;
  auto late = stage.http(
      "POST", "/v1/worlds/w/receipts",
      R"({"intent_hash":")" + hash_text(dropped) + R"(","payload":{"delivered_at_ns":1}})");
  EXPECT_EQ(late.status, 200) << late.body;
  EXPECT_EQ(stage.head("w").height, height);
}

// case 85
TEST_F(Case, a_cell_that_ends_drops_its_open_intents) {
  make();
  ASSERT_TRUE(go("a", output({}, {timer(5), charge(1)})));
  StepOutput gone;
  ASSERT_TRUE(go("a", gone));
  EXPECT_EQ(main("a").status, InstanceStatus::completed);
  EXPECT_TRUE(stage.pending("w").empty());
  EXPECT_TRUE(stage.open.empty());
  EXPECT_EQ(stage.head("w").inflight, 0u);
}

TEST_F(Case, a_module_in_python_loads_and_its_steps_fail) {
  json::Value air = test_air();
  const json::Value runtime = *json::parse(
      R"({"kind":"python","python":"3.12","artifact":{"kind":"python_bundle","root_hash":")" +
      std::string(kNoHash) + R"("}})");
  for (json::Value& node : air.array()) {
    if (node.string_or("$kind") == "defmodule") {
      node.object().set("runtime", runtime);
      node.object().set("name", "t/snake@1");
    }
    if (json::Value* impl = node.find("impl"); impl && impl->string_or("module") == "t/scripted@1")
      *impl->find("module") = "t/snake@1";
    if (json::Value* modules = node.find("modules"))
      modules->array()[0].object().set("name", "t/snake@1");
  }
  auto made = stage.create("w", air);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(main("a").status, InstanceStatus::failed);
  EXPECT_NE(main("a").failure.find("runtime 'python'"), std::string::npos) << main("a").failure;
}

TEST_F(Case, an_effect_of_the_last_step_still_goes_out) {
  make();
  for (bool keeps : {false, true}) {
    const std::string id = keeps ? "keeps" : "gone";
    ASSERT_TRUE(go(id, output({}, {timer(5)})));
    StepOutput last = output({"bye"}, {charge(1)});
    if (!keeps) last.state.reset();
    last.completed = keeps;
    ASSERT_TRUE(go(id, last));
    ASSERT_EQ(stage.pending("w").size(), 1u);
    EXPECT_EQ(stage.pending("w")[0].identity.effect, "t/charge@1");
    EXPECT_EQ(stage.open.size(), 1u);
    EXPECT_EQ(main(id).status, InstanceStatus::waiting);
    ASSERT_TRUE(stage.settle("w", stage.pending("w")[0].intent, Value(cbor::Map{{"code", 0}})));
    EXPECT_EQ(
        stage.log("w", "t/main@1", key_of(id)),
        keeps ? (std::vector<std::string>{"bye", "Receipt"}) : std::vector<std::string>{"Receipt"});
    EXPECT_EQ(stage.head("w").inflight, 0u);
  }
}

// case 87, case 92, case 178, case 200
TEST_F(Case, a_snapshot_keeps_cursors_and_open_intents) {
  make();
  ASSERT_TRUE(go("a", output({"s"}, {timer(5), timer(6)})));
  const auto pending = stage.pending("w");
  auto frame = [&](const std::string& world, uint64_t seq) {
    StreamFrame f;
    f.intent = pending[0].intent;
    f.origin_module_id = pending[0].workflow;
    f.origin_instance_key = pending[0].key;
    f.identity.effect = pending[0].identity.effect;
    f.emitted_at_seq = pending[0].emitted_at_seq;
    f.seq = seq;
    f.kind = "p";
    f.payload = "\xa0";
    return stage.say("frame", encode(SendFrame{world, f}));
  };
  ASSERT_TRUE(frame("w", 1));
  ASSERT_TRUE(frame("w", 3));
  ASSERT_TRUE(stage.settle("w", pending[1].intent, fired));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  ASSERT_EQ(fork("f").status, 201);
  EXPECT_EQ(stage.dump("f"), stage.dump("w"));
  ASSERT_EQ(stage.pending("f").size(), 1u);
  EXPECT_EQ(stage.pending("f")[0].intent, pending[0].intent);
  EXPECT_EQ(stage.cell("f", "t/main@1", key_of("a")).inflight[0].last_stream_seq, 3u);
  EXPECT_EQ(frame("f", 3)->string_or("status"), "dropped");
  ASSERT_TRUE(stage.say(
      "receipt", encode(SendReceipt{"f", {pending[0].intent, "ok", cbor::encode(fired), {}, {}}})));
  EXPECT_EQ(stage.log("f", "t/main@1", key_of("a")).back(), "Receipt");
}

// case 94, case 95, case 96: what a step queued before it asked for the apply stands in its way.
TEST_F(Case, apply_is_refused_while_deliveries_are_queued) {
  json::Value air = test_air();
  node(air, "t/main@1")
      .find("effects_emitted")
      ->array()
      .push_back(json::Value("sys/governance.apply@1"));
  make(air);
  const std::string base(
      json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)->string_or("manifest_hash"));
  ASSERT_TRUE(stage.govern(
      "w",
      {.action = "propose", .patch = R"({"base_manifest_hash":")" + base + R"(","patches":[]})"}));
  ASSERT_TRUE(stage.govern("w", {.action = "shadow"}));
  ASSERT_TRUE(stage.govern("w", {.action = "approve", .approver = "a"}));
  ASSERT_TRUE(go(
      "a",
      output({}, {{"sys/governance.apply@1", cbor::encode(cbor::Map{{"proposal_id", 0}}), {}, {}}},
             {event_to("t/Tell@1", "x")})));
  EXPECT_EQ(last("effect_receipt").text_or("status"), "error");
  const Value why = *cbor::decode(last("effect_receipt").find("payload_cbor")->bytes());
  EXPECT_EQ(why.text_or("code"), "governance.apply_inflight");
  EXPECT_NE(why.text_or("message").find("workflow_queue_pending=true"), std::string_view::npos);
  EXPECT_EQ(stage.head("w").applied, 0u);
}

// case 114
TEST_F(Case, a_shadow_run_needs_no_secrets) {
  json::Value air = test_air();
  air.array().insert(
      air.array().begin(),
      *json::parse(
          R"({"$kind":"defsecret","name":"pay/key@1","binding_id":"env:NOT_SET_ANYWHERE"})"));
  air.array().back().object().set("secrets", *json::parse(R"([{"name":"pay/key@1"}])"));
  make(air);
  const std::string base(
      json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)->string_or("manifest_hash"));
  ASSERT_TRUE(stage.govern(
      "w",
      {.action = "propose", .patch = R"({"base_manifest_hash":")" + base + R"(","patches":[]})"}));
  Govern g{.action = "shadow"};
  g.seeds.push_back({"t/Do@1", cbor::encode(tell("a", output({"2"}, {charge(1)}))), {}});
  auto report = stage.govern("w", g);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->find("effects_predicted")->array().size(), 1u);
}

// case 115
TEST_F(Case, a_changed_stored_patch_is_refused) {
  make();
  const std::string base(
      json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)->string_or("manifest_hash"));
  auto proposed = stage.govern(
      "w",
      {.action = "propose", .patch = R"({"base_manifest_hash":")" + base + R"(","patches":[]})"});
  ASSERT_TRUE(proposed);
  const Bytes digest = *parse_hash(proposed->string_or("patch_hash"));
  ASSERT_TRUE(lab([&](Turn& turn) -> Result<Bytes> {
    turn.write(blob_key("t", digest), encode_blob(1, "another"));
    return Bytes();
  }));
  EXPECT_EQ(stage.govern("w", {.action = "shadow"}).error().reason, "governance.shadow_mismatch");
}

// case 124
TEST_F(Case, an_unflushed_turn_is_lost_as_a_whole) {
  make();
  ASSERT_TRUE(go("a"));
  const Bytes before = stage.dump("w");
  Input input;
  input.program = kProgram;
  input.verb = "event";
  input.caller.tenant = "t";
  input.stamp.dice = {99, 7};
  input.body = encode(
      SendEvent{"w", {"t/Do@1", cbor::encode(tell("a", output({"lost"}, {timer(5)}))), {}}, 0});
  bool told = false;
  stage.kernel->run(std::move(input), [&](Result<Answer>) { told = true; });
  { Group lost = stage.kernel->take(); }  // the disk failed
  EXPECT_FALSE(told);
  CHECK(stage.committer->apply());
  stage.cache.clear();
  stage.kernel = std::make_unique<Kernel>(
      stage.cache, [this] { return stage.snapshot(); },
      std::vector<const Program*>{stage.program.get()}, stage.journal.last());
  EXPECT_EQ(stage.dump("w"), before);
  EXPECT_TRUE(stage.open.empty());
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(log("a"), (Words{"Do", "Do"}));
}

// case 128, case 156: no context for who declares none; no key and no cell mode for who has none.
TEST_F(Case, only_workflows_that_declare_a_context_get_one) {
  json::Value air = test_air();
  make(air);
  ASSERT_TRUE(stage.send("w", "t/Tell@1", Value(cbor::Map{{"id", "x"}, {"word", "ctx"}})));
  EXPECT_EQ(stage.log("w", "t/teller@1", ""), Words{"ctx"});  // it has no context
  node(air, "t/teller@1").object().set("context", "sys/WorkflowContext@1");
  ASSERT_TRUE(stage.create("v", air));
  ASSERT_TRUE(stage.send("v", "t/Tell@1", Value(cbor::Map{{"id", "x"}, {"word", "ctx"}})));
  const Value ctx = *cbor::decode(*unhex(stage.log("v", "t/teller@1", "").back()));
  EXPECT_EQ(ctx.map().size(), 9u);
  EXPECT_FALSE(ctx.find("key"));
  EXPECT_FALSE(ctx.find("cell_mode")->boolean());
}

// case 129
TEST_F(Case, entropy_of_another_length_is_refused) {
  const Event event{"t/Do@1", "\xa0", {}};
  for (size_t size : {0u, 63u, 65u}) {
    const Bytes record = domain_event_record(event, {1, 1, 1, Bytes(size, 'e'), kNoHash}, kNoHash);
    EXPECT_FALSE(moment_of(*cbor::decode(record))) << size;
  }
  EXPECT_TRUE(moment_of(
      *cbor::decode(domain_event_record(event, {1, 1, 1, Bytes(64, 'e'), kNoHash}, kNoHash))));
}

// case 143, case 144
TEST_F(Case, only_events_of_an_arm_are_wrapped) {
  stage.modules.add("t/scripted@1", std::make_unique<Echo>());
  json::Value air = test_air();
  node(air, "t/boom@1").find("impl")->object().set("entrypoint", "step");
  make(air);
  ASSERT_TRUE(stage.send("w", "t/Boom@1", tell("a")));
  EXPECT_EQ(cbor::decode(*unhex(log("a", "t/boom@1").back()))->text_or("id"), "a");
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(echoed("a").text_or("$tag"), "Do");
  EXPECT_EQ(echoed("a").find("$value")->text_or("id"), "a");
}

// case 150, case 151, case 158
TEST_F(Case, a_key_is_read_through_nested_records) {
  json::Value air = test_air();
  node(air, "t/Id@1").object().set("type", *json::parse(R"({"uuid":{}})"));
  node(air, "t/Boom@1")
      .object()
      .set("type", *json::parse(R"({"record":{"who":{"record":{"id":{"ref":"t/Id@1"}}}}})"));
  node(air, "t/boom@1").find("impl")->object().set("entrypoint", "step");
  routes(air).array().back().object().set("key_field", "who.id");
  make(air);
  const std::string id = "2b1f5a5e-0d6a-4f43-9c3e-111111111111";
  auto send = [&](const std::string& text) {
    return stage.send("w", "t/Boom@1", Value(cbor::Map{{"who", cbor::Map{{"id", text}}}}));
  };
  ASSERT_TRUE(send("2B1F5A5E-0D6A-4F43-9C3E-111111111111"));
  EXPECT_EQ(last("domain_event").find("key")->bytes(), key_of(id));
  EXPECT_EQ(log(id, "t/boom@1").size(), 1u);
  const uint64_t height = stage.head("w").height;
  EXPECT_FALSE(send("not-a-uuid"));
  EXPECT_EQ(stage.head("w").height, height);
}

// case 157
TEST_F(Case, a_keyed_workflow_gets_no_event_without_a_key) {
  make();
  EXPECT_FALSE(stage.send("w", "t/Do@1", Value(cbor::Map{{"word", "x"}})));
  EXPECT_EQ(stage.head("w").events, 0u);
}

}  // namespace
}  // namespace pawl::worlds

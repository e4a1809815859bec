// Steps, effects, routing, mailboxes: what a world promises about one input.

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using cbor::Value;
using Words = std::vector<std::string>;

struct WorldTest : testing::Test {
  WorldTest() {
    auto made = stage.create("w", test_air());
    if (!made) ADD_FAILURE() << made.error().message;
  }
  ~WorldTest() override {
    const Verified v = stage.verify_all();
    EXPECT_EQ(v.difference, "");
    EXPECT_GT(v.rerun, 0u);
  }
  Result<json::Value> go(const std::string& id, const std::optional<StepOutput>& out = {},
                         const std::string& schema = "t/Do@1") {
    return stage.send("w", schema, tell(id, out));
  }
  Words log(const std::string& id, const std::string& workflow = "t/main@1") {
    return stage.log("w", workflow, key_of(id));
  }
  Instance main(const std::string& id) { return stage.cell("w", "t/main@1", key_of(id)); }
  cbor::Value last(std::string_view kind) {
    cbor::Value found;
    for (const Value& r : stage.records("w"))
      if (record_kind(r) == kind) found = r;
    return found;
  }
  Stage stage;
};
using Step = WorldTest;
using Effects = WorldTest;
using Routing = WorldTest;
using Mailbox = WorldTest;
using Receipts = WorldTest;
using Streams = WorldTest;

// case 183
TEST_F(Step, a_new_world_has_its_manifest_and_a_baseline_snapshot) {
  EXPECT_EQ(stage.kinds("w"), (Words{"manifest", "snapshot"}));
}

// case 88, case 121, case 154, case 187
TEST_F(Step, an_event_is_recorded_with_its_stamp_and_steps_its_cell) {
  auto sent = go("a");
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(log("a"), Words{"Do"});
  EXPECT_EQ(stage.kinds("w"), (Words{"manifest", "snapshot", "domain_event"}));
  const Value r = last("domain_event");
  EXPECT_EQ(r.find("key")->bytes(), key_of("a"));
  EXPECT_EQ(r.find("entropy")->bytes().size(), 64u);
  EXPECT_EQ(r.find("journal_height")->as_uint64(), 2u);
  EXPECT_EQ(main("a").last_seq, 2u);
  EXPECT_EQ(main("a").status, InstanceStatus::running);
}

// case 58
TEST_F(Step, state_is_kept_canonical_and_must_fit_its_schema) {
  StepOutput loose = output({});
  loose.state = *unhex("bf636c6f679f6178ffff");  // {log: ["x"]} in indefinite lengths
  ASSERT_TRUE(go("a", loose));
  EXPECT_EQ(*main("a").state, state_of({"x"}));
  loose.state = cbor::encode(cbor::Map{{"other", 1}});
  ASSERT_TRUE(go("a", loose));
  EXPECT_EQ(main("a").status, InstanceStatus::failed);
  EXPECT_EQ(*main("a").state, state_of({"x"}));
  EXPECT_EQ(last("step_failed").text_or("error_code"), "workflow.output_invalid");
}

// case 91, case 155
TEST_F(Step, a_null_state_deletes_the_cell_and_the_next_event_sees_none) {
  ASSERT_TRUE(go("a"));
  StepOutput gone;
  ASSERT_TRUE(go("a", gone));
  EXPECT_FALSE(main("a").state);
  EXPECT_EQ(main("a").status, InstanceStatus::completed);
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(log("a"), Words{"Do"});
  EXPECT_EQ(main("a").status, InstanceStatus::running);
}

TEST_F(Step, an_output_may_say_completed_and_keep_its_state) {
  ASSERT_TRUE(go("a", output({"begin"}, {timer(1)})));
  StepOutput done = output({"end"});
  done.completed = true;
  ASSERT_TRUE(go("a", done));
  EXPECT_EQ(main("a").status, InstanceStatus::completed);
  EXPECT_EQ(log("a"), Words{"end"});
  EXPECT_EQ(stage.head("w").inflight, 0u);
  EXPECT_TRUE(stage.open.empty());
}

// case 132, case 210
TEST_F(Step, a_poison_event_fails_its_cell_and_nothing_else) {
  ASSERT_TRUE(stage.send("w", "t/Boom@1", tell("a")));
  EXPECT_EQ(stage.cell("w", "t/boom@1", key_of("a")).status, InstanceStatus::failed);
  EXPECT_EQ(last("step_failed").text_or("error_code"), "wasm.error");
  ASSERT_TRUE(go("b"));
  EXPECT_EQ(log("b"), Words{"Do"});
  EXPECT_EQ(stage.head("w").steps_failed, 1u);
}

TEST_F(Step, garbage_from_a_module_is_a_failed_step) {
  Value event = cbor::Map{{"id", "a"}, {"out", cbor::octets("\x01garbage")}};
  ASSERT_TRUE(stage.send("w", "t/Do@1", event));
  EXPECT_EQ(main("a").status, InstanceStatus::failed);
  ASSERT_TRUE(
      stage.send("w", "t/Do@1", Value(cbor::Map{{"id", "b"}, {"out", cbor::octets("\xa0")}})));
  EXPECT_NE(last("step_failed").text_or("error_message").find("missing field `state`"),
            std::string_view::npos);
}

// case 38, case 39, case 40
TEST_F(Step, limits_are_64_effects_256_events_and_a_mebibyte) {
  ASSERT_TRUE(go("a", output({}, std::vector<EmittedEffect>(64, timer(5)))));
  EXPECT_EQ(stage.pending("w").size(), 64u);
  ASSERT_TRUE(go("b", output({}, std::vector<EmittedEffect>(65, timer(5)))));
  EXPECT_NE(last("step_failed").text_or("error_message").find("max effects per tick: 65 > 64"),
            std::string_view::npos);
  ASSERT_TRUE(go("c", output({}, {}, std::vector<Event>(256, event_to("t/Lonely@1", "x")))));
  EXPECT_EQ(main("c").status, InstanceStatus::failed);  // t/Lonely@1 has no fields
  std::vector<Event> lonely(256, Event{"t/Lonely@1", "\xa0", {}});
  ASSERT_TRUE(go("d", output({}, {}, lonely)));
  EXPECT_EQ(main("d").status, InstanceStatus::running);
  lonely.push_back(lonely[0]);
  ASSERT_TRUE(go("e", output({}, {}, lonely)));
  EXPECT_NE(
      last("step_failed").text_or("error_message").find("max domain events per tick: 257 > 256"),
      std::string_view::npos);
  StepOutput large = output({});
  large.annotations = Bytes(kMaxOutputBytes - large.state->size(), 'x');
  ASSERT_TRUE(go("f", large));
  EXPECT_EQ(main("f").status, InstanceStatus::running);
  *large.annotations += "x";
  ASSERT_TRUE(go("g", large));
  EXPECT_NE(last("step_failed")
                .text_or("error_message")
                .find("max output bytes per tick: 1048577 > 1048576"),
            std::string_view::npos);
}

// case 33, case 46
TEST_F(Step, a_step_with_one_bad_effect_leaves_nothing_of_itself) {
  ASSERT_TRUE(go("a", output({"kept"})));
  ASSERT_TRUE(go("a", output({"lost"}, {timer(5), {"sys/vault.put@1", "\xa0", {}, {}}},
                             {event_to("t/Tell@1", "x")})));
  EXPECT_EQ(log("a"), Words{"kept"});
  EXPECT_TRUE(stage.pending("w").empty());
  EXPECT_TRUE(stage.open.empty());
  EXPECT_TRUE(stage.log("w", "t/teller@1", "").empty());
  EXPECT_EQ(last("step_failed").text_or("error_message"),
            "invalid workflow output: workflow 't/main@1' emitted undeclared effect "
            "'sys/vault.put@1'; declare the effect in workflow.effects_emitted");
}

// case 37
TEST_F(Effects, the_short_name_of_an_effect_is_not_its_name) {
  ASSERT_TRUE(go("a", output({}, {{"timer.set", "\xa0", {}, {}}})));
  EXPECT_EQ(main("a").status, InstanceStatus::failed);
}

// case 41, case 42, case 43, case 84, case 188
TEST_F(Effects, each_emission_is_an_intent_of_its_own_in_list_order) {
  ASSERT_TRUE(go("a", output({}, {timer(5), timer(5), timer(5, Bytes("k"))})));
  auto pending = stage.pending("w");
  ASSERT_EQ(pending.size(), 3u);
  std::set<Bytes> intents;
  for (const PendingIntent& p : pending)
    intents.insert(p.intent);
  EXPECT_EQ(intents.size(), 3u);
  const Instance a = main("a");
  EXPECT_EQ(a.status, InstanceStatus::waiting);
  ASSERT_EQ(a.inflight.size(), 3u);
  ASSERT_TRUE(go("b", output({}, {timer(5)})));
  for (const PendingIntent& p : stage.pending("w"))
    EXPECT_EQ(intents.contains(p.intent), p.key == key_of("a"));
  const Value r = last("effect_intent");
  EXPECT_EQ(r.find("origin")->text_or("name"), "t/main@1");
  EXPECT_EQ(r.find("origin")->find("instance_key")->bytes(), key_of("b"));
}

// case 122
TEST_F(Effects, events_are_recorded_before_effects_and_run_after_queued_work) {
  ASSERT_TRUE(go("a", output({}, {timer(5)}, {event_to("t/Tell@1", "x")})));
  EXPECT_EQ(stage.kinds("w"),
            (Words{"manifest", "snapshot", "domain_event", "domain_event", "effect_intent"}));
  EXPECT_EQ(stage.log("w", "t/teller@1", ""), Words{"Tell"});
}

// case 53
TEST_F(Effects, params_are_canonical_and_bad_ones_are_refused_in_the_managers_words) {
  EmittedEffect loose{"t/charge@1", *unhex("bf66616d6f756e741805ff"), "payments", Bytes("order-1")};
  ASSERT_TRUE(go("a", output({}, {loose})));
  const PendingIntent p = stage.pending("w")[0];
  EXPECT_EQ(p.params, cbor::canonical(cbor::Map{{"amount", 5}}));
  EXPECT_EQ(p.issuer_ref, "payments");
  EXPECT_EQ(p.requested_key, "order-1");
  ASSERT_TRUE(
      go("b", output({}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", -1}}), {}, {}}})));
  EXPECT_EQ(last("step_failed").text_or("error_code"), "effect.manager");
  EXPECT_EQ(last("step_failed").text_or("error_message"),
            "effect manager error: params do not conform to schema: expected nat");
}

// case 123
TEST_F(Effects, leave_only_with_their_frame_and_go_to_whom_they_concern) {
  ASSERT_TRUE(
      go("a", output({}, {timer(77),
                          {"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}), {}, {}},
                          {"sys/http.request@1",
                           cbor::encode(cbor::Map{
                               {"method", "GET"}, {"url", "http://x/"}, {"headers", cbor::Map{}}}),
                           {},
                           {}}})));
  std::map<To, std::string> ways;
  for (const auto& [id, e] : stage.open)
    ways[e->to] = e->queue;
  EXPECT_EQ(ways[To::clock], "sys/timer.set@1");
  EXPECT_EQ(ways[To::worker], "t/charge@1");
  EXPECT_EQ(ways[To::member], "sys/http.request@1");
}

// case 55
TEST_F(Effects, blobs_are_put_and_got_in_the_same_turn_under_their_hash) {
  ASSERT_TRUE(go("a", output({"s"}, {{"sys/blob.put@1",
                                      cbor::encode(cbor::Map{{"bytes", cbor::octets("hello")}}),
                                      {},
                                      {}}})));
  EXPECT_EQ(log("a"), (Words{"s", "Receipt"}));
  EXPECT_EQ(stage.kinds("w"),
            (Words{"manifest", "snapshot", "domain_event", "effect_intent", "effect_receipt"}));
  EXPECT_TRUE(last("effect_intent").find("params_ref"));
  EXPECT_TRUE(last("effect_intent").find("params_cbor")->bytes().empty());
  EXPECT_TRUE(stage.pending("w").empty());
  const std::string ref = hash_text(sha256("hello"));
  ASSERT_TRUE(
      go("a",
         output({"g"}, {{"sys/blob.get@1", cbor::encode(cbor::Map{{"blob_ref", ref}}), {}, {}}})));
  EXPECT_EQ(last("effect_receipt").text_or("status"), "ok");
  ASSERT_TRUE(go(
      "a",
      output({"g"}, {{"sys/blob.get@1", cbor::encode(cbor::Map{{"blob_ref", kNoHash}}), {}, {}}})));
  EXPECT_EQ(last("effect_receipt").text_or("status"), "error");
  ASSERT_TRUE(
      go("b", output({}, {{"sys/blob.put@1",
                           cbor::encode(cbor::Map{{"bytes", cbor::octets("x")}, {"blob_ref", ref}}),
                           {},
                           {}}})));
  EXPECT_EQ(main("b").status, InstanceStatus::failed);
}

// case 126
TEST_F(Effects, introspection_is_answered_with_a_receipt_like_any_other) {
  ASSERT_TRUE(go("a", output({"s"}, {{"sys/introspect.journal_head@1", "\xa0", {}, {}}})));
  EXPECT_EQ(log("a"), (Words{"s", "Receipt"}));
  const Value payload = *cbor::decode(last("effect_receipt").find("payload_cbor")->bytes());
  EXPECT_EQ(payload.find("meta")->find("journal_height")->as_uint64(), 4u);
}

TEST_F(Effects, introspection_reads_the_moment_it_is_asked_for_or_says_why_not) {
  json::Value air = test_air();
  for (json::Value& node : air.array())
    if (node.string_or("name") == "t/main@1")
      node.find("effects_emitted")->array().push_back("sys/introspect.workflow_state@1");
  ASSERT_TRUE(stage.create("v", air));
  auto send = [&](const StepOutput& out) {
    ASSERT_TRUE(stage.send("v", "t/Do@1", tell("a", out)));
  };
  send(output({"then"}));
  ASSERT_TRUE(stage.say("snapshot", "v"));
  const uint64_t taken = stage.head("v").height - 1;
  auto ask = [&](const std::string& consistency) {
    send(output({"now"}, {{"sys/introspect.workflow_state@1",
                           cbor::encode(cbor::Map{{"workflow", "t/main@1"},
                                                  {"key", cbor::octets(key_of("a"))},
                                                  {"consistency", consistency}}),
                           {},
                           {}}}));
    Value receipt;
    for (const Value& record : stage.records("v"))
      if (record_kind(record) == "effect_receipt") receipt = record;
    auto payload = cbor::decode(receipt.find("payload_cbor")->bytes());
    if (receipt.text_or("status") == "error") return std::string(payload->text_or("code"));
    return payload->find("state")->is_bytes()
               ? json::print(bytes_json(payload->find("state")->bytes()))
               : std::string("none");
  };
  EXPECT_EQ(ask("head"), R"({"log":["now"]})");
  EXPECT_EQ(ask("at_least:3"), R"({"log":["now"]})");
  EXPECT_EQ(ask("at_least:9999"), "query.error");
  EXPECT_EQ(ask("exact:" + std::to_string(taken)), R"({"log":["then"]})");
  EXPECT_EQ(ask("exact:2"), "query.error");
  EXPECT_EQ(ask("whenever"), "invalid_request");
}

// case 49, case 50, case 153
TEST_F(Routing, what_does_not_fit_its_schema_is_refused_without_a_record) {
  auto bad = stage.send("w", "t/Do@1", Value(cbor::Map{{"x", 1}}));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message,
            "manifest loader error: event 't/Do@1' payload failed validation: value does not "
            "conform to schema: record missing field 'id'");
  EXPECT_EQ(stage.send("w", "t/None@1", Value(cbor::Map{})).error().message,
            "manifest loader error: event 't/None@1' payload failed validation: schema 't/None@1' "
            "not found");
  EXPECT_EQ(stage.send("w", "t/Do@1", tell("a"), key_of("b")).error().message,
            "manifest loader error: event 't/Do@1' carried key that differs from extracted key for "
            "workflow 't/main@1'");
  EXPECT_EQ(stage.kinds("w").size(), 2u);
}

// case 148
TEST_F(Routing, an_unrouted_event_is_recorded_and_nobody_runs) {
  ASSERT_TRUE(stage.send("w", "t/Lonely@1", Value(cbor::Map{})));
  EXPECT_EQ(stage.kinds("w").size(), 3u);
  EXPECT_EQ(stage.head("w").steps, 0u);
}

// case 68
TEST_F(Routing, receipts_cannot_be_forged_as_events) {
  auto forged = stage.send("w", "sys/EffectReceiptEnvelope@1", Value(cbor::Map{}));
  ASSERT_FALSE(forged);
  EXPECT_NE(forged.error().message.find("for receipts and frames only"), std::string::npos);
}

TEST_F(Routing, nor_inside_an_event_of_the_whole_family_nor_by_another_workflow) {
  json::Value air = test_air();
  air.array().back().find("routing")->find("subscriptions")->array()[0] =
      *json::parse(R"({"event":"t/Event@1","workflow":"t/main@1","key_field":"$value.id"})");
  ASSERT_TRUE(stage.create("v", air));
  const Value receipt = cbor::Map{{"origin_module_id", "t/main@1"},
                                  {"intent_id", kNoHash},
                                  {"effect", "t/charge@1"},
                                  {"emitted_at_seq", 1},
                                  {"receipt_payload", cbor::octets("")},
                                  {"status", "ok"},
                                  {"signature", cbor::octets("")}};
  for (const Value& event : {Value(cbor::Map{{"Receipt", receipt}}),
                             Value(cbor::Map{{"$tag", "Receipt"}, {"$value", receipt}})}) {
    auto forged = stage.send("v", "t/Event@1", event);
    ASSERT_FALSE(forged);
    EXPECT_EQ(forged.error().reason, "invalid_request");
  }
  EXPECT_EQ(stage.kinds("v").size(), 2u);
  ASSERT_TRUE(
      go("a", output({"s"}, {}, {{"sys/EffectReceiptEnvelope@1", cbor::encode(receipt), {}}})));
  EXPECT_EQ(last("step_failed").text_or("error_code"), "workflow.output_invalid");
}

// case 51, case 145
TEST_F(Routing, sugar_and_tagged_forms_are_one_event) {
  json::Value air = test_air();
  air.array().back().find("routing")->find("subscriptions")->array()[0] =
      *json::parse(R"({"event":"t/Event@1","workflow":"t/main@1","key_field":"$value.id"})");
  ASSERT_TRUE(stage.create("v", air));
  ASSERT_TRUE(stage.send("v", "t/Event@1", Value(cbor::Map{{"Do", tell("a")}})));
  ASSERT_TRUE(
      stage.send("v", "t/Event@1", Value(cbor::Map{{"$tag", "Do"}, {"$value", tell("a")}})));
  ASSERT_TRUE(stage.send("v", "t/Do@1", tell("a")));  // an arm of the family reaches it too
  auto records = stage.records("v");
  EXPECT_EQ(*records[2].find("value"), *records[3].find("value"));
  EXPECT_EQ(stage.log("v", "t/main@1", key_of("a")), (Words{"Do", "Do", "Do"}));
}

// case 142
TEST_F(Routing, the_same_workflow_subscribed_twice_runs_twice) {
  json::Value air = test_air();
  json::Array& routes = air.array().back().find("routing")->find("subscriptions")->array();
  routes.push_back(routes[0]);
  ASSERT_TRUE(stage.create("v", air));
  ASSERT_TRUE(stage.send("v", "t/Do@1", tell("a")));
  EXPECT_EQ(stage.log("v", "t/main@1", key_of("a")), (Words{"Do", "Do"}));
}

TEST_F(Step, the_context_has_exactly_its_fields_and_says_when_and_who) {
  auto context = [&](const std::string& id) { return *cbor::decode(*unhex(log(id).back())); };
  const Value ask = cbor::Map{{"id", "a"}, {"word", "ctx"}};
  ASSERT_TRUE(stage.send("w", "t/Do@1", ask));
  const Value ctx = context("a");
  EXPECT_EQ(ctx.map().size(), 10u);
  EXPECT_EQ(ctx.find("key")->bytes(), key_of("a"));
  EXPECT_TRUE(ctx.find("cell_mode")->boolean());
  EXPECT_EQ(ctx.find("journal_height")->as_uint64(), 2u);
  EXPECT_EQ(ctx.find("now_ns")->as_uint64(), static_cast<uint64_t>(stage.clock));
  EXPECT_EQ(ctx.find("entropy")->bytes(), last("domain_event").find("entropy")->bytes());
  EXPECT_EQ(ctx.text_or("workflow"), "t/main@1");
  // An event that a workflow emits has a stamp of its own, recorded with it.
  ASSERT_TRUE(go(
      "b", output({}, {},
                  {Event{"t/Do@1", cbor::encode(cbor::Map{{"id", "c"}, {"word", "ctx"}}), {}}})));
  const Value emitted = context("c");
  EXPECT_EQ(emitted.find("journal_height")->as_uint64(), 4u);
  EXPECT_EQ(emitted.find("entropy")->bytes(), last("domain_event").find("entropy")->bytes());
  EXPECT_NE(emitted.find("entropy")->bytes(), ctx.find("entropy")->bytes());
}

TEST_F(Effects, a_workflow_may_govern_its_world) {
  const std::string base = std::string(
      json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)->string_or("manifest_hash"));
  const std::string patch = R"({"base_manifest_hash":")" + base + R"(","patches":[]})";
  const Value input = cbor::Map{{"$tag", "patch_doc_json"}, {"$value", cbor::octets(patch)}};
  ASSERT_TRUE(go(
      "a",
      output({},
             {{"sys/governance.propose@1", cbor::encode(cbor::Map{{"patch", input}}), {}, {}}})));
  EXPECT_EQ(last("effect_receipt").text_or("status"), "ok");
  ASSERT_TRUE(go(
      "a",
      output({}, {{"sys/governance.shadow@1", cbor::encode(cbor::Map{{"proposal_id", 0}}), {}, {}},
                  {"sys/governance.approve@1",
                   cbor::encode(cbor::Map{{"proposal_id", 0},
                                          {"approver", "me"},
                                          {"decision", cbor::Map{{"$tag", "approve"}}}}),
                   {},
                   {}}})));
  EXPECT_EQ(last("effect_receipt").text_or("status"), "ok");
  EXPECT_EQ(log("a"), (Words{"Receipt", "Receipt"}));
  auto proposals = json::parse(stage.http("GET", "/v1/worlds/w/governance").body);
  EXPECT_EQ(proposals->find("proposals")->array()[0].string_or("state"), "Approved");
}

// case 159
TEST_F(Mailbox, ready_cells_take_turns_and_each_keeps_its_order) {
  std::vector<Event> events;
  auto word = [](const std::string& schema, const std::string& id, const std::string& w) {
    return Event{schema, cbor::encode(cbor::Map{{"id", id}, {"word", w}}), {}};
  };
  for (int i = 0; i < 5; ++i)
    events.push_back(word("t/Half@1", "flood", "f" + std::to_string(i)));
  events.push_back(word("t/Deaf@1", "one", "d"));
  ASSERT_TRUE(go("a", output({}, {}, events)));
  EXPECT_EQ(log("flood", "t/half@1"), (Words{"f0", "f1", "f2", "f3", "f4"}));
  // The single event ran after one of the flood, not after five: its step stands second.
  EXPECT_EQ(stage.cell("w", "t/deaf@1", key_of("one")).status, InstanceStatus::running);
}

TEST_F(Mailbox, a_flood_goes_on_in_further_turns_until_it_is_worked_off) {
  // 80 events, each of which emits 16 to one cell: 1360 steps, more than one turn may take.
  StepOutput inner = output({}, {}, std::vector<Event>(16, event_to("t/Deaf@1", "sink")));
  StepOutput outer = output(
      {}, {}, std::vector<Event>(80, Event{"t/Half@1", cbor::encode(tell("mid", inner)), {}}));
  ASSERT_TRUE(go("a", outer));
  EXPECT_EQ(log("sink", "t/deaf@1").size(), 1280u);
  EXPECT_EQ(stage.head("w").queued, 0u);
  EXPECT_EQ(stage.head("w").chain, 0u);
  EXPECT_GT(stage.head("w").steps, kMaxStepsPerTurn);
}

TEST_F(Mailbox, the_steps_of_a_batch_are_counted_event_by_event) {
  const Bytes value = cbor::encode(tell(
      "a",
      output({}, {}, std::vector<Event>(kMaxEvents, event_to("t/Deaf@1", "sink", output({}))))));
  const SendEvents batch{
      "w", std::vector<Event>(kMaxStepsPerInput / kMaxEvents + 2, Event{"t/Do@1", value, {}})};
  ASSERT_TRUE(stage.say("events", encode(batch)));
  EXPECT_GT(stage.head("w").steps, kMaxStepsPerInput);
  EXPECT_EQ(stage.head("w").steps_failed, 0u);
}

// case 60, case 61, case 62, case 65
TEST_F(Receipts, reach_the_cell_that_asked_and_settle_once) {
  ASSERT_TRUE(go("a", output({}, {timer(5)})));
  ASSERT_TRUE(go("b", output({}, {timer(5)})));
  const PendingIntent a = stage.pending("w")[0], b = stage.pending("w")[1];
  ASSERT_TRUE(stage.settle("w", b.intent, Value(cbor::Map{{"delivered_at_ns", 9}})));
  EXPECT_EQ(log("b"), Words{"Receipt"});
  EXPECT_EQ(log("a"), Words{});
  EXPECT_EQ(main("a").status, InstanceStatus::waiting);
  EXPECT_EQ(main("b").status, InstanceStatus::running);
  const size_t records = stage.kinds("w").size();
  auto again = stage.settle("w", b.intent, Value(cbor::Map{{"delivered_at_ns", 9}}));
  EXPECT_EQ(again.error().reason, "EFFECT_NOT_OPEN");
  EXPECT_EQ(stage.kinds("w").size(), records);
  ASSERT_TRUE(stage.settle("w", a.intent, Value(cbor::Map{{"delivered_at_ns", 9}})));
  EXPECT_EQ(log("a"), Words{"Receipt"});
}

TEST_F(Receipts, carry_the_whole_envelope) {
  ASSERT_TRUE(go(
      "a", output({}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}), "payments", {}}})));
  const PendingIntent p = stage.pending("w")[0];
  ASSERT_TRUE(stage.settle("w", p.intent, Value(cbor::Map{{"code", 0}})));
  const Value r = last("effect_receipt");
  EXPECT_EQ(r.find("payload_cbor")->bytes(), cbor::canonical(cbor::Map{{"code", 0}}));
  EXPECT_EQ(p.emitted_at_seq, 2u);
  EXPECT_EQ(log("a"), Words{"Receipt"});
}

// case 80
TEST_F(Receipts, that_do_not_fit_are_faults_with_a_rejected_event_where_there_is_an_arm) {
  ASSERT_TRUE(go("a", output({"s"}, {timer(5), timer(6)})));
  const auto pending = stage.pending("w");
  ASSERT_TRUE(stage.settle("w", pending[0].intent, Value(cbor::Map{{"nonsense", 1}})));
  EXPECT_EQ(log("a"), (Words{"s", "Rejected"}));
  EXPECT_EQ(stage.pending("w").size(), 1u);
  EXPECT_EQ(main("a").status, InstanceStatus::waiting);
  const Value fault = *cbor::decode(last("custom").find("data")->bytes());
  EXPECT_EQ(fault.text_or("error_code"), "receipt.invalid_payload");
  EXPECT_TRUE(fault.find("delivered_rejected")->boolean());
  EXPECT_FALSE(fault.find("workflow_failed")->boolean());
}

// case 77, case 79, case 83
TEST_F(Receipts, without_an_arm_a_fault_fails_the_instance_and_drops_what_it_waits_for) {
  ASSERT_TRUE(
      go("a",
         output({"s"}, {timer(5), {"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}), {}, {}}}),
         "t/Half@1"));
  ASSERT_TRUE(go("b", output({"s"}, {timer(5)}), "t/Half@1"));
  PendingIntent charge;
  for (const PendingIntent& p : stage.pending("w"))
    if (p.identity.effect == "t/charge@1") charge = p;
  ASSERT_TRUE(stage.settle("w", charge.intent, Value(cbor::Map{{"code", 0}})));
  const Instance a = stage.cell("w", "t/half@1", key_of("a"));
  EXPECT_EQ(a.status, InstanceStatus::failed);
  EXPECT_TRUE(a.inflight.empty());
  EXPECT_EQ(stage.cell("w", "t/half@1", key_of("b")).status, InstanceStatus::waiting);
  const Value fault = *cbor::decode(last("custom").find("data")->bytes());
  EXPECT_EQ(fault.text_or("error_code"), "receipt.delivery_failed");
  EXPECT_EQ(fault.find("dropped_pending_receipts")->as_uint64(), 1u);
  EXPECT_EQ(stage.open.size(), 1u);
}

// case 82
TEST_F(Receipts, error_and_timeout_may_carry_any_payload) {
  ASSERT_TRUE(go("a", output({"s"}, {timer(5), timer(6)})));
  const auto pending = stage.pending("w");
  ASSERT_TRUE(stage.settle("w", pending[0].intent, Value("the bank is closed"), "error"));
  ASSERT_TRUE(stage.settle("w", pending[1].intent, Value(), "timeout"));
  EXPECT_EQ(log("a"), (Words{"s", "Receipt", "Receipt"}));
  EXPECT_EQ(stage.head("w").receipts_error, 1u);
  EXPECT_EQ(stage.head("w").receipts_timeout, 1u);
}

// case 74
TEST_F(Receipts, a_timer_fires_as_the_older_typed_event_where_that_is_the_arm) {
  ASSERT_TRUE(go("a", output({"s"}, {timer(5)}), "t/Half@1"));
  ASSERT_TRUE(stage.say("timer", {}, stage.open.begin()->first));
  EXPECT_EQ(log("a", "t/half@1"), (Words{"s", "Fired"}));
  EXPECT_EQ(stage.head("w").timers, 0u);
}

// case 127
TEST_F(Receipts, a_timer_is_never_early) {
  const uint64_t late = static_cast<uint64_t>(stage.clock) + 10 * kSecond;
  ASSERT_TRUE(go("a", output({"s"}, {timer(late)})));
  EXPECT_EQ(stage.open.begin()->second->due, static_cast<Time>(late));
  ASSERT_TRUE(stage.say("timer", {}, stage.open.begin()->first));
  const Value payload = *cbor::decode(last("effect_receipt").find("payload_cbor")->bytes());
  EXPECT_GE(*payload.find("delivered_at_ns")->as_uint64(), late);
}

// case 63
TEST_F(Receipts, of_an_unknown_intent_change_nothing) {
  auto unknown =
      stage.say("receipt", encode(SendReceipt{"w", {Bytes(32, '\x09'), "ok", "\xa0", {}, {}}}));
  EXPECT_EQ(unknown.error().reason, "receipt.unknown");
  EXPECT_EQ(unknown.error().message,
            "unknown effect receipt for "
            "sha256:0909090909090909090909090909090909090909090909090909090909090909");
  EXPECT_EQ(stage.kinds("w").size(), 2u);
}

// case 163, case 208
TEST_F(Receipts, random_interleavings_over_a_hundred_cells_never_cross) {
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(go("c" + std::to_string(i), output({}, {timer(5), timer(6)})));
  auto pending = stage.pending("w");
  uint64_t seed = 12345;
  while (!pending.empty()) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const size_t at = (seed >> 33) % pending.size();
    ASSERT_TRUE(stage.settle("w", pending[at].intent, Value(cbor::Map{{"delivered_at_ns", 9}})));
    pending.erase(pending.begin() + static_cast<long>(at));
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(log("c" + std::to_string(i)), (Words{"Receipt", "Receipt"}));
}

TEST_F(Receipts, are_checked_against_the_executors_key_when_the_manifest_names_one) {
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_private_key(
          EVP_PKEY_ED25519, nullptr,
          reinterpret_cast<const unsigned char*>(std::string(32, 's').data()), 32),
      EVP_PKEY_free);
  Bytes open_key(32, '\0');
  size_t size = 32;
  ASSERT_EQ(EVP_PKEY_get_raw_public_key(key.get(),
                                        reinterpret_cast<unsigned char*>(open_key.data()), &size),
            1);
  json::Value air = test_air();
  air.array().back().object().set("executor_keys",
                                  json::object({{"t/charge@1", base64(open_key)}}));
  ASSERT_TRUE(stage.create("v", air));
  const EmittedEffect charge{"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}), {}, {}};
  ASSERT_TRUE(stage.send("v", "t/Do@1", tell("a", output({"s"}, {charge, charge}))));
  const auto pending = stage.pending("v");
  const size_t before = stage.kinds("v").size();
  auto forged =
      stage.settle("v", pending[0].intent, Value(cbor::Map{{"code", 0}}));  // zeros sign nothing
  ASSERT_FALSE(forged);
  EXPECT_EQ(forged.error().reason, "receipt.signature_invalid");
  EXPECT_EQ(stage.kinds("v").size(), before);
  EXPECT_EQ(stage.pending("v").size(), 2u);
  EXPECT_EQ(stage.log("v", "t/main@1", key_of("a")), (Words{"s"}));
  IntentReceipt receipt{
      pending[1].intent, "ok", cbor::canonical(cbor::Map{{"code", 0}}), {}, Bytes(64, '\0')};
  const Bytes message = signed_bytes(receipt);
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free);
  size = 64;
  ASSERT_EQ(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()), 1);
  ASSERT_EQ(
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(receipt.signature.data()),
                     &size, reinterpret_cast<const unsigned char*>(message.data()), message.size()),
      1);
  receipt.payload = cbor::encode(
      cbor::Map{{"code", 0}});  // what was signed is the canonical payload, however it is sent
  ASSERT_TRUE(stage.say("receipt", encode(SendReceipt{"v", receipt}),
                        effect_id({"t", "v"}, hex(receipt.intent))));
  EXPECT_EQ(stage.log("v", "t/main@1", key_of("a")), (Words{"s", "Receipt"}));
}

StreamFrame frame_for(const PendingIntent& p, uint64_t seq) {
  StreamFrame f;
  f.intent = p.intent;
  f.origin_module_id = p.workflow;
  f.origin_instance_key = p.key;
  f.identity.effect = p.identity.effect;
  f.emitted_at_seq = p.emitted_at_seq;
  f.seq = seq;
  f.kind = "progress";
  f.payload = "\xa0";
  return f;
}

// case 195, case 196, case 197, case 198, case 199
TEST_F(Streams, frames_move_a_cursor_gaps_are_noted_and_the_rest_is_dropped_with_a_reason) {
  ASSERT_TRUE(go("a", output({}, {timer(5)})));
  const PendingIntent p = stage.pending("w")[0];
  auto push = [&](StreamFrame f) {
    return std::string(
        stage.say("frame", encode(SendFrame{"w", std::move(f)}))->string_or("status"));
  };
  auto reason = [&] {
    return std::string(cbor::decode(last("custom").find("data")->bytes())->text_or("reason_code"));
  };
  EXPECT_EQ(push(frame_for(p, 1)), "accepted");
  EXPECT_EQ(push(frame_for(p, 1)), "dropped");
  EXPECT_EQ(reason(), "stream.non_monotonic");
  EXPECT_EQ(push(frame_for(p, 4)), "accepted");
  EXPECT_EQ(last("custom").text_or("tag"), "workflow.stream_gap");
  EXPECT_EQ(main("a").inflight[0].last_stream_seq, 4u);
  StreamFrame other = frame_for(p, 5);
  other.emitted_at_seq = 99;
  EXPECT_EQ(push(other), "dropped");
  EXPECT_EQ(reason(), "stream.identity_mismatch");
  EXPECT_EQ(log("a"), (Words{"Frame", "Frame"}));
  ASSERT_TRUE(stage.settle("w", p.intent, Value(cbor::Map{{"delivered_at_ns", 9}})));
  EXPECT_EQ(push(frame_for(p, 6)), "dropped");
  EXPECT_EQ(reason(), "stream.unknown_intent");
}

}  // namespace
}  // namespace pawl::worlds

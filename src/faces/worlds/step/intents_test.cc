// Effects of workflows: identity, order, and those that are answered in the same turn.

#include <gtest/gtest.h>

#include "faces/worlds/http/pages.h"
#include "faces/worlds/world_test.h"

namespace pawl::worlds {
namespace {

using Effects = WorldTest;

// case 37
TEST_F(Effects, an_effect_is_known_by_its_full_name_only) {
  ASSERT_TRUE(go("a", output({}, {{"timer.set", "\xa0", {}, {}}})));
  EXPECT_EQ(main("a").status, InstanceStatus::failed);
}

// case 41, case 42, case 43, case 84, case 188
TEST_F(Effects, each_emission_is_a_separate_intent_in_order) {
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
TEST_F(Effects, events_are_recorded_before_effects_and_run_after_queued_events) {
  ASSERT_TRUE(go("a", output({}, {timer(5)}, {event_to("t/Tell@1", "x")})));
  EXPECT_EQ(stage.kinds("w"),
            (Words{"manifest", "snapshot", "domain_event", "domain_event", "effect_intent"}));
  EXPECT_EQ(stage.log("w", "t/teller@1", ""), Words{"Tell"});
}

// case 53
TEST_F(Effects, params_are_made_canonical_and_bad_params_fail_the_step) {
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
TEST_F(Effects, effects_leave_with_their_frame_to_clock_member_or_worker) {
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
TEST_F(Effects, blobs_are_put_and_read_in_the_same_turn) {
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
TEST_F(Effects, introspection_is_answered_with_a_receipt) {
  ASSERT_TRUE(go("a", output({"s"}, {{"sys/introspect.journal_head@1", "\xa0", {}, {}}})));
  EXPECT_EQ(log("a"), (Words{"s", "Receipt"}));
  const Value payload = *cbor::decode(last("effect_receipt").find("payload_cbor")->bytes());
  EXPECT_EQ(payload.find("meta")->find("journal_height")->as_uint64(), 4u);
}

TEST_F(Effects, introspection_reads_the_requested_height_or_is_refused) {
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

}  // namespace
}  // namespace pawl::worlds

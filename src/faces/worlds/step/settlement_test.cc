// Receipts and stream frames.

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "faces/worlds/world_test.h"

namespace pawl::worlds {
namespace {

using Receipts = WorldTest;

using Streams = WorldTest;

// case 60, case 61, case 62, case 65
TEST_F(Receipts, a_receipt_reaches_the_cell_that_asked_and_settles_once) {
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

TEST_F(Receipts, a_receipt_event_carries_the_whole_envelope) {
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
TEST_F(Receipts, a_bad_receipt_becomes_a_rejected_event_where_there_is_an_arm) {
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
TEST_F(Receipts, a_fault_without_an_arm_fails_the_instance_and_drops_its_intents) {
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
TEST_F(Receipts, a_timer_fires_as_the_typed_event_of_older_modules) {
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
TEST_F(Receipts, a_receipt_of_an_unknown_intent_changes_nothing) {
  auto unknown =
      stage.say("receipt", encode(SendReceipt{"w", {Bytes(32, '\x09'), "ok", "\xa0", {}, {}}}));
  EXPECT_EQ(unknown.error().reason, "receipt.unknown");
  EXPECT_EQ(unknown.error().message,
            "unknown effect receipt for "
            "sha256:0909090909090909090909090909090909090909090909090909090909090909");
  EXPECT_EQ(stage.kinds("w").size(), 2u);
}

// case 163, case 208
TEST_F(Receipts, receipts_of_a_hundred_cells_in_random_order_never_cross) {
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

TEST_F(Receipts, receipts_must_be_signed_when_the_manifest_names_a_key) {
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
      stage.settle("v", pending[0].intent, Value(cbor::Map{{"code", 0}}));  // a signature of zeros
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
  receipt.payload =
      cbor::encode(cbor::Map{{"code", 0}});  // the signature covers the canonical payload
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
TEST_F(Streams, frames_advance_a_cursor_gaps_are_recorded_and_others_dropped) {
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

// The bytes of cells and inputs. Journals hold them: they never change.

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

TEST(model, a_world_keeps_its_bytes) {
  World v;
  v.id = "w";
  v.created = -3;
  v.manifest_hash = "m";
  v.engine = "e";
  v.limits = {.fuel = 300, .memory_bytes = 5};
  v.parent = "p";
  v.parent_height = 6;
  v.detached = true;
  v.epoch = 2;
  v.retained_from = 7;
  v.snapshot_ref = "s";
  v.snapshot_height = 8;
  v.roots["a"] = {"x", "y"};
  Bytes old;
  Writer w(old);
  w.u8(1);
  w.str("w");
  w.sint(-3);
  w.str("m");
  w.str("e");
  w.uint(300);
  w.uint(5);
  w.boolean(true);
  w.str("p");
  w.uint(6);
  w.boolean(true);
  w.uint(2);
  w.uint(7);
  w.str("s");
  w.uint(8);
  w.uint(1);
  w.str("a");
  w.str("x");
  w.str("y");
  EXPECT_EQ(hex(encode(v)), hex(old));
  auto read = decode_world(old);
  ASSERT_TRUE(read);
  EXPECT_EQ(encode(*read), old);
}

TEST(model, an_instance_keeps_its_bytes) {
  Instance v;
  v.state = "st";
  v.status = InstanceStatus::waiting;
  v.last_seq = 9;
  v.module_version = "v";
  v.inflight = {{"i", "f", 3, 4}};
  v.failure = "why";
  v.dirty = 2;
  EXPECT_EQ(hex(encode(v)),
            "01"
            "01"
            "09"
            "0176"
            "01"
            "0169"
            "0166"
            "03"
            "04"
            "03776879"
            "01"
            "027374"
            "02");
  auto read = decode_instance(encode(v));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->inflight, v.inflight);
  EXPECT_EQ(hex(encode_for_snapshot(v)),
            "01"
            "01"
            "09"
            "0176"
            "01"
            "0169"
            "0166"
            "03"
            "04"
            "03776879"
            "00"
            "00");
}

TEST(model, a_proposal_of_an_older_version_has_no_height) {
  Proposal v;
  v.id = 1;
  v.patch_hash = "p";
  v.height = 7;
  Bytes bytes = encode(v);
  bytes.pop_back();  // the last field came later
  auto read = decode_proposal(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->patch_hash, "p");
  EXPECT_EQ(read->height, 0u);
}

TEST(model, damaged_cells_are_refused) {
  EXPECT_EQ(decode_head("").error().reason, "store.error");
  EXPECT_EQ(decode_head("\x02").error().reason, "store.error");
  EXPECT_EQ(decode_head("\x01\x01").error().reason, "store.error");
  EXPECT_EQ(decode_world(encode(World{}) + "x").error().code, Code::corrupt);
}

TEST(verbs, a_receipt_keeps_its_bytes_with_and_without_cost) {
  SendReceipt v{"w", {"i", "ok", "p", {}, "s"}};
  EXPECT_EQ(hex(encode(v)),
            "0177"
            "0169"
            "026f6b"
            "0170"
            "00"
            "00"
            "0173");
  v.receipt.cost_cents = 300;
  EXPECT_EQ(hex(encode(v)),
            "0177"
            "0169"
            "026f6b"
            "0170"
            "01"
            "ac02"
            "0173");
  auto read = decode_receipt(encode(v));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->receipt.cost_cents, 300u);
}

TEST(verbs, an_event_and_a_secret_keep_their_bytes) {
  EXPECT_EQ(hex(encode(SendEvent{"w", {"t/A@1", "v", "k"}, 2})),
            "0177"
            "05742f414031"
            "0176"
            "01"
            "016b"
            "02");
  EXPECT_EQ(hex(encode(SecretBinding{"b", "{}", {{1, "z"}}})),
            "0162"
            "027b7d"
            "01"
            "02"
            "017a");
  EXPECT_EQ(decode_send("x").error().reason, "journal.error");
}

// case 31
TEST(model, cell_keys_have_the_bytes_and_hashes_of_the_vectors) {
  Schemas schemas;
  const json::Value all = vector_file("cell_keys.json");
  std::set<std::string> forms;
  for (const json::Value& v : all.find("vectors")->array()) {
    const json::Value& in = *v.find("input");
    const json::Value& expect = *v.find("expect");
    // The vector without a type is the one cell of an unkeyed workflow: its key has no bytes.
    Bytes key;
    if (const json::Value* type = in.find("key_type")) {
      forms.insert(type->object().begin()->name);
      key = cbor::canonical(*normalize(to_cbor(*in.find("json")), **parse_type(*type), schemas));
      EXPECT_EQ(hex(key), expect.string_or("key_bytes_hex"));
    }
    EXPECT_EQ(hash_text(sha256(key)), expect.string_or("key_hash"));
    EXPECT_EQ(instance_id("com.acme/w@1", key), expect.string_or("instance_id"));
  }
  EXPECT_EQ(forms, (std::set<std::string>{"nat", "record", "text", "uuid"}));
}

}  // namespace
}  // namespace pawl::worlds

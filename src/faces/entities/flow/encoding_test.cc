// The bytes that stand in journals. Each literal was written by the version before the field-list
// codec; a change here makes old journals unreadable.

#include <gtest/gtest.h>

#include "base/hash.h"
#include "faces/entities/flow/call.h"
#include "faces/entities/flow/transaction.h"

namespace pawl::entities {
namespace {

Command sample_command() {
  Item item{.op = Item::patch};
  item.model = "m";
  item.version = -2;
  item.id = "id";
  item.data = R"({"n":1})";
  item.transition = "go";
  item.if_match = "old";
  return {.items = {item}, .lenient = true, .tx = "tx"};
}

TEST(encoding, a_call_keeps_its_bytes) {
  const std::string bytes =
      "5a01002a36fe9c9717016603782c7905054649584544027b7d017501720174ac02027478";
  Call call;
  call.kind = Call::schedule;
  call.starts_transaction = true;
  call.redelivered = true;
  call.opened_at = 1'700'000'000'000'000'001;
  call.name = "f";
  call.tags = "x,y";
  call.timeout_ms = -3;
  call.retry_policy = "FIXED";
  call.attempt = 3;
  call.payload = "{}";
  call.user = "u";
  call.roles = "r";
  call.token = "t";
  call.turn = 300;
  call.tx = "tx";
  EXPECT_EQ(hex(encode(call)), bytes);
  auto decoded = decode_call(*unhex(bytes));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->kind, Call::schedule);
  EXPECT_EQ(decoded->attempt, 3);
  EXPECT_EQ(hex(encode(*decoded)), bytes);
  Call criterion;
  criterion.kind = Call::criterion;
  criterion.durable = true;
  EXPECT_EQ(hex(encode(criterion)), "05000000000000000000000000000000000000");
}

TEST(encoding, a_call_result_keeps_its_bytes) {
  const std::string bytes = "02026e6f027b7d0302027731027732";
  CallResult result{.kind = CallResult::failed,
                    .message = "no",
                    .data = "{}",
                    .matches = true,
                    .redelivered = true,
                    .warnings = {"w1", "w2"}};
  EXPECT_EQ(hex(encode(result)), bytes);
  auto decoded = decode_call_result(*unhex(bytes));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(hex(encode(*decoded)), bytes);
}

TEST(encoding, a_command_keeps_its_bytes) {
  const std::string bytes = "0103016d03026964077b226e223a317d02676f036f6c640100027478";
  EXPECT_EQ(hex(encode(sample_command())), bytes);
  auto decoded = decode_command(*unhex(bytes));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(hex(encode(*decoded)), bytes);
  EXPECT_EQ(decoded->items[0].value.find("n")->as_int64(), 1);
}

TEST(encoding, a_waiting_transaction_keeps_its_bytes) {
  const std::string bytes =
      "1c0103016d03026964077b226e223a317d02676f036f6c6401000274780101740175017203747832037478310201"
      "61"
      "0162055b2278225d010177032801026964016d0201410500000000000000060000000000000002747802676f0105"
      "74"
      "696d65727b7d02027b7d0177010203050801014104";
  Transaction transaction;
  transaction.command = std::make_shared<const Command>(sample_command());
  transaction.at = 1;
  transaction.tenant = "t";
  transaction.user = "u";
  transaction.roles = "r";
  transaction.tx = "tx2";
  transaction.entry_tx = "tx1";
  transaction.ids = {"a", "b"};
  transaction.failed.push_back(json::Value("x"));
  transaction.warnings = {"w"};
  Progress& progress = transaction.progress;
  progress.stage = Stage::process;
  progress.entity = {"id", "m", 1, "A", 5, 6, "tx", "go", "{}", {"timer"}};
  progress.change = ChangeKind::updated;
  progress.old_data = "{}";
  progress.workflow = "w";
  progress.candidate = 1;
  progress.transition = 2;
  progress.processor = 3;
  progress.named = true;
  progress.asked = true;
  progress.rounds = 4;
  progress.visits = {{"A", 2}};
  EXPECT_EQ(hex(encode(transaction)), bytes);
  auto decoded = decode_transaction(*unhex(bytes));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(hex(encode(*decoded)), bytes);
}

TEST(encoding, audit_notes_keep_their_bytes) {
  const std::string bytes =
      "410174026964037478310700000000000000020374783201750102014103776879027b7d";
  Trail trail{"t", "id", "tx1", 7, ChangeKind::updated, "tx2", "u", {}};
  trail.events.push_back({EventKind::cancel, "A", "why", "{}"});
  EXPECT_EQ(hex(encode(trail)), bytes);
  auto decoded = decode_trail(*unhex(bytes));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(hex(encode(*decoded)), bytes);
  trail.change_tx = trail.tx;
  trail.events.clear();
  EXPECT_EQ(hex(encode(trail)), "4101740269640374783107000000000000000200017500");
  EXPECT_EQ(decode_trail(encode(trail))->change_tx, "tx1");
}

TEST(encoding, notes_about_state_changes_keep_their_bytes) {
  EXPECT_EQ(hex(encode(StateChange{"t", "m", 1, {}, "A"})), "4d0174016d0200014102");
  const Bytes bytes = *unhex("4d0174016d020141014203");
  auto decoded = decode_state_change(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->before, "A");
  EXPECT_EQ(decoded->after, "B");
  EXPECT_EQ(encode(*decoded), bytes);
}

TEST(encoding, an_unknown_event_in_an_audit_note_is_refused) {
  Bytes bytes = *unhex("410174026964037478310700000000000000020374783201750102014103776879027b7d");
  bytes[bytes.find("\x01\x02\x01"
                   "A") +
        1] = 17;
  EXPECT_FALSE(decode_trail(bytes));
}

}  // namespace
}  // namespace pawl::entities

// The bytes of commands and outcomes. They are in journals and must never change.

#include "faces/lifecycle/run/command.h"

#include <gtest/gtest.h>

namespace pawl::lifecycle {
namespace {

TEST(encoding, of_a_command_is_stable) {
  const Command command{.type = "t",
                        .id = "i",
                        .to = "flying",
                        .note = "why",
                        .record = "rec",
                        .text = "{}",
                        .triggered = source::op,
                        .stamp = 1,
                        .expected_stamp = 0x1122334455667788,
                        .expected_version = 300};
  const Bytes bytes = encode(command);
  EXPECT_EQ(hex(bytes),
            "0174016906666c79696e670377687903726563027b7d0201000000000000008877665544332211ac02");
  auto read = decode_command(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(encode(*read), bytes);
  EXPECT_FALSE(decode_command(BytesView(bytes).substr(1)));
}

TEST(encoding, of_an_unknown_source_is_refused) {
  Bytes bytes = encode(Command{});
  bytes[6] = 4;
  auto read = decode_command(bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(errc_of(read.error()), errc::invalid_transition);
}

TEST(encoding, of_an_outcome_is_stable) {
  const Outcome outcome{300, "flying", "w", "same"};
  EXPECT_EQ(hex(encode(outcome)), "ac0206666c79696e6701770473616d65");
  EXPECT_EQ(encode(*decode_outcome(encode(outcome))), encode(outcome));
}

}  // namespace
}  // namespace pawl::lifecycle

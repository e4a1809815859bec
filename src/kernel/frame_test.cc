// The bytes of frames and effects that every later binary must read.

#include <gtest/gtest.h>

#include "kernel/delivery.h"
#include "kernel/frame.h"

namespace pawl {

// These bytes were written by version 1 and must be read by every later binary.
TEST(frame, format_version_1_stays_readable) {
  Bytes body = *unhex(
      "01017001017601620174017501728080d0e2c6bfce972f01000000000000000200000000000000016505016b0201"
      "6b03010178016c070001016e");
  auto frame = decode_frame(9, body);
  ASSERT_TRUE(frame) << frame.error().message;
  EXPECT_EQ(frame->program, "p");
  ASSERT_EQ(frame->inputs.size(), 1u);
  EXPECT_EQ(frame->inputs[0].caller.user, "u");
  EXPECT_EQ(frame->inputs[0].stamp.now, 1700000000000000000);
  EXPECT_EQ(frame->inputs[0].settles, "e");
  ASSERT_EQ(frame->writes.size(), 2u);
  EXPECT_EQ(frame->writes[0].value->bytes, "x");
  EXPECT_EQ(frame->writes[1].before, 7u);
  EXPECT_FALSE(frame->writes[1].value);
  EXPECT_EQ(frame->notes, std::vector<Bytes>{"n"});
  EXPECT_EQ(encode_body(*frame), body);
  EXPECT_FALSE(frame->once_waits);
  EXPECT_TRUE(frame->inputs[0].records_first_answer);
  body[0] = 9;
  EXPECT_EQ(decode_frame(9, body).error().reason, "FRAME_VERSION");
  body[0] = 0;
  EXPECT_EQ(decode_frame(9, body).error().reason, "FRAME_VERSION");
}

// And these by version 2.
TEST(frame, format_version_2_stays_readable) {
  Bytes body = *unhex(
      "02017001017601620174017501728080d0e2c6bfce972f01000000000000000200000000000000016505016b0201"
      "6b03010178016c070001016e"
      "02"
      "017807"
      "017900");
  auto frame = decode_frame(9, body);
  ASSERT_TRUE(frame) << frame.error().message;
  ASSERT_EQ(frame->stale_reads.size(), 2u);
  EXPECT_EQ(frame->stale_reads[0].key, "x");
  EXPECT_EQ(frame->stale_reads[0].version, 7u);
  EXPECT_EQ(frame->stale_reads[1].version, 0u);
  EXPECT_EQ(encode_body(*frame), body);
  Frame outcome;
  ASSERT_TRUE(decode_outcome(9, body, outcome));
  EXPECT_EQ(outcome.writes.size(), 2u);
}

// And these by versions 3 and 4: the answer under the Idempotency-Key waits for an effect.
TEST(frame, format_versions_3_and_4_stay_readable) {
  for (std::string stale : {"", "01017807"}) {
    Bytes body =
        *unhex((stale.empty() ? "03" : "04") +
               std::string("017001017601620174017501728080d0e2c6bfce972f010000000000000002000000"
                           "00000000016505016b02016b03010178016c070001016e") +
               stale);
    auto frame = decode_frame(9, body);
    ASSERT_TRUE(frame) << frame.error().message;
    EXPECT_TRUE(frame->once_waits);
    EXPECT_FALSE(frame->inputs[0].records_first_answer);
    EXPECT_EQ(frame->stale_reads.size(), stale.empty() ? 0u : 1u);
    EXPECT_EQ(encode_body(*frame), body);
    Frame outcome;
    ASSERT_TRUE(decode_outcome(9, body, outcome));
    EXPECT_EQ(outcome.writes.size(), 2u);
  }
}

// And these by versions 5 to 8: an effect of another shard began the turn.
TEST(frame, format_versions_5_to_8_stay_readable) {
  for (int bits = 0; bits < 4; ++bits) {
    const std::string stale = bits & 1 ? "01017807" : "";
    Bytes body = *unhex("0" + std::to_string(5 + bits) +
                        "017001017601620174017501728080d0e2c6bfce972f010000000000000002000000"
                        "00000000016505016b02016b03010178016c070001016e" +
                        stale + "030904026678");
    auto frame = decode_frame(9, body);
    ASSERT_TRUE(frame) << frame.error().message;
    ASSERT_TRUE(frame->delivery());
    EXPECT_EQ(frame->delivery()->source, 3u);
    EXPECT_EQ(frame->delivery()->number, 9u);
    EXPECT_EQ(frame->delivery()->below, 4u);
    EXPECT_EQ(frame->delivery()->effect, "fx");
    EXPECT_EQ(frame->once_waits, (bits & 2) != 0);
    EXPECT_EQ(encode_body(*frame), body);
    Frame outcome;
    ASSERT_TRUE(decode_outcome(9, body, outcome));
    EXPECT_EQ(outcome.writes.size(), 2u);
  }
}

TEST(frame, an_effect_to_another_shard_stays_readable) {
  const Bytes bytes = *unhex(
      "05016501700174017100016200000007017201780179"
      "2a");
  auto effect = decode_effect(bytes);
  ASSERT_TRUE(effect) << effect.error().message;
  ASSERT_TRUE(effect->address);
  EXPECT_EQ(effect->address->shard, 7u);
  EXPECT_EQ(effect->address->program, "r");
  EXPECT_EQ(effect->address->user, "x");
  EXPECT_EQ(effect->address->roles, "y");
  EXPECT_EQ(effect->address->number, 42u);
  EXPECT_EQ(encode(*effect), bytes);
}

TEST(frame, a_delivery_travels_between_nodes_unchanged) {
  Effect effect = effect_to_shard("e", "p", 7, "verb", "body", {"t", "u", "r"});
  const Bytes bytes = encode_delivery(delivery_of(effect, 3, 1));
  auto input = decode_delivery(bytes);
  ASSERT_TRUE(input);
  EXPECT_EQ(encode_delivery(*input), bytes);
  EXPECT_EQ(input->caller.roles, "r");
  EXPECT_EQ(input->delivery->source, 3u);
  EXPECT_EQ(input->delivery->effect, "e");
  EXPECT_FALSE(decode_delivery(bytes + "x"));
  for (size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(decode_delivery(BytesView(bytes).substr(0, cut)));
}

// An effect that was written before it could carry a key, and one with the key alone.
TEST(frame, effects_with_and_without_a_key_stay_readable) {
  Effect effect{"e", To::worker, "p", "t", "q", 0, "b"};
  EXPECT_EQ(encode(effect), *unhex("0201650170017401710001"
                                   "62"));
  effect.once = "k";
  EXPECT_EQ(encode(effect), *unhex("0201650170017401710001"
                                   "62"
                                   "0000"
                                   "016b"));
  auto read = decode_effect(encode(effect));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->once, "k");
  EXPECT_EQ(read->fairness_key, "");
}

}  // namespace pawl

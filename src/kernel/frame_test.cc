// The bytes of frames and effects that every later binary must read.

#include <gtest/gtest.h>

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
  body[0] = 5;
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

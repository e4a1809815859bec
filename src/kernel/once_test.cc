// Requests with an Idempotency-Key whose answer waits for an effect.

#include "kernel/once.h"

#include <gtest/gtest.h>

#include "kernel/test_kernel.h"

namespace pawl {
namespace {

struct OnceKernel : TestKernel {
  using Heard = std::optional<Result<Answer>>;

  Input request(std::string verb, Bytes body) {
    Input in = input(std::move(verb), std::move(body));
    in.once = "k1";
    return in;
  }
  void send(Heard& heard, std::string verb = "open-later", Bytes body = "job1") {
    submit(request(std::move(verb), std::move(body)), &heard);
    flush();
  }
  // The process dies and starts again: callers that wait are forgotten.
  void restart() {
    const Seq last = kernel->last();
    kernel = std::make_unique<Kernel>(
        cache, [this] { return snapshot(); }, programs, last);
  }
  bool recorded() { return kernel->current(once_key({"t", "a", ""}, "k1"))->exists(); }
  size_t opened(const std::string& id) const {
    return static_cast<size_t>(std::count_if(
        sent.begin(), sent.end(), [&](const Effect& effect) { return effect.id == id; }));
  }
};

TEST(once, a_repetition_waits_for_the_answer_of_the_first_request) {
  OnceKernel s;
  OnceKernel::Heard first, second, other, third;
  s.send(first);
  s.send(second);
  s.send(other, "open-later", "job2");
  EXPECT_FALSE(first);
  EXPECT_FALSE(second);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->error().reason, "IDEMPOTENCY_KEY_REUSED");
  (void)s.say(s.receipt("job1", "ok")).has_value();
  ASSERT_TRUE(first && *first);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*first)->body, "settled:100");
  EXPECT_EQ((*second)->body, "settled:100");
  s.send(third);
  ASSERT_TRUE(third && *third);
  EXPECT_EQ((*third)->body, "settled:100");
  EXPECT_EQ(s.opened("job1"), 1u);
  EXPECT_EQ(s.rerun().difference, "");
}

TEST(once, a_repetition_after_a_restart_waits_for_the_effect_too) {
  OnceKernel s;
  OnceKernel::Heard first, second;
  s.send(first);
  s.restart();
  s.send(second);
  EXPECT_FALSE(second);
  (void)s.say(s.receipt("job1", "ok")).has_value();
  EXPECT_FALSE(first);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->body, "settled:100");
  EXPECT_EQ(s.opened("job1"), 1u);
  EXPECT_EQ(s.rerun().difference, "");
}

TEST(once, a_refused_answer_is_not_recorded_and_a_repetition_runs_again) {
  OnceKernel s;
  OnceKernel::Heard first, second;
  s.send(first);
  (void)s.say(s.receipt("job1", "late-refused")).has_value();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->error().reason, "REFUSED");
  EXPECT_FALSE(s.recorded());
  s.send(second);
  EXPECT_FALSE(second);
  EXPECT_EQ(s.opened("job1"), 2u);
  EXPECT_EQ(s.rerun().difference, "");
}

TEST(once, a_receipt_that_fails_leaves_the_request_under_way) {
  OnceKernel s;
  OnceKernel::Heard first, second;
  s.send(first);
  (void)s.say(s.receipt("job1", "fail")).has_value();
  s.send(second);
  EXPECT_FALSE(second);
  (void)s.say(s.receipt("job1", "ok")).has_value();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->body, "settled:100");
}

TEST(once, a_withdrawn_effect_ends_the_record) {
  OnceKernel s;
  OnceKernel::Heard first, second;
  s.send(first);
  s.send(second);
  EXPECT_TRUE(s.say(s.input("withdraw", "job1")));
  for (const OnceKernel::Heard& heard : {first, second}) {
    ASSERT_TRUE(heard);
    EXPECT_EQ(heard->error().reason, "WITHDRAWN");
  }
  EXPECT_FALSE(s.recorded());
  EXPECT_EQ(s.rerun().difference, "");
}

TEST(once, an_answer_that_is_put_off_twice_comes_from_the_last_effect) {
  OnceKernel s;
  OnceKernel::Heard first, second, third;
  s.send(first);
  EXPECT_TRUE(s.say(s.receipt("job1", "then job2")));
  s.restart();
  s.send(second);
  EXPECT_FALSE(second);
  (void)s.say(s.receipt("job2", "ok")).has_value();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->body, "settled:100");
  s.send(third);
  ASSERT_TRUE(third && *third);
  EXPECT_EQ((*third)->body, "settled:100");
  EXPECT_EQ(s.rerun().difference, "");
}

// The key was forgotten after a day, and another request uses it, while the first one still waits.
TEST(once, a_late_receipt_does_not_answer_a_later_request_with_the_same_key) {
  OnceKernel s;
  OnceKernel::Heard first, second, third;
  s.send(first);
  s.now += 25 * 3600 * kSecond;
  s.send(second, "add", "7");
  ASSERT_TRUE(second && *second);
  (void)s.say(s.receipt("job1", "ok")).has_value();
  ASSERT_TRUE(first && *first);
  s.send(third, "add", "7");
  ASSERT_TRUE(third && *third);
  EXPECT_EQ((*third)->body, "7");
  EXPECT_EQ(s.rerun().difference, "");
}

// Frames of version 1 recorded the answer of the first turn. They verify, and the record stands.
TEST(once, a_frame_that_recorded_its_first_answer_verifies) {
  OnceKernel s;
  Input old = s.request("open-later", "job1");
  old.records_first_answer = true;
  s.submit(std::move(old), nullptr);
  s.flush();
  ASSERT_EQ(s.sent.size(), 1u);
  EXPECT_EQ(s.sent[0].once, "");
  Bytes entry = *s.journal.get(1);
  EXPECT_EQ(body_of(entry)[0], 1);
  OnceKernel::Heard again;
  s.send(again);
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->body, "");
  (void)s.say(s.receipt("job1", "ok")).has_value();
  EXPECT_EQ(s.rerun().difference, "");
}

}  // namespace
}  // namespace pawl

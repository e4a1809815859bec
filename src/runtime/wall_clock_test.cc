#include "runtime/wall_clock.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

constexpr Time kHour = 3600 * kSecond;

struct Clocks {
  Time wall = 1'000'000 * kSecond;
  Time steady = 500 * kSecond;
  WallClock clock{{[this] { return wall; }, [this] { return steady; }}};
  void pass(Time time) {
    wall += time;
    steady += time;
  }
};

TEST(wall_clock, follows_the_system_clock) {
  Clocks c;
  EXPECT_EQ(c.clock.now(), c.wall);
  c.pass(kHour);
  EXPECT_EQ(c.clock.now(), c.wall);
  c.wall += kHour;  // set forward
  EXPECT_EQ(c.clock.now(), c.wall);
  EXPECT_EQ(c.clock.behind(), 0);
}

TEST(wall_clock, goes_on_when_the_system_clock_is_set_back) {
  Clocks c;
  const Time before = c.clock.now();
  c.wall -= kHour;
  EXPECT_GE(c.clock.now(), before);
  EXPECT_EQ(c.clock.behind(), kHour);
  c.pass(64 * kSecond);
  // A timer of 64 seconds is at most one second late.
  EXPECT_EQ(c.clock.now(), before + 63 * kSecond);
}

TEST(wall_clock, never_goes_back_and_returns_to_the_system_clock) {
  Clocks c;
  c.clock.now();
  c.wall -= kHour;
  Time last = c.clock.now();
  for (int minutes = 0; minutes < 3 * 24 * 60; ++minutes) {
    c.pass(60 * kSecond);
    const Time now = c.clock.now();
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_EQ(c.clock.behind(), 0);
  EXPECT_EQ(c.clock.now(), c.wall);
}

TEST(wall_clock, a_second_step_back_does_not_depend_on_the_first) {
  Clocks c;
  c.clock.now();
  c.wall -= kHour;
  c.clock.now();
  c.wall += kHour;  // set right again
  EXPECT_EQ(c.clock.now(), c.wall);
  EXPECT_EQ(c.clock.behind(), 0);
  c.pass(64 * kHour);
  const Time before = c.clock.now();
  c.wall -= kHour;
  EXPECT_GE(c.clock.now(), before);
  EXPECT_EQ(c.clock.behind(), kHour);
}

TEST(wall_clock, follows_a_step_of_less_than_a_second) {
  Clocks c;
  c.clock.now();
  c.wall -= kSecond / 2;
  EXPECT_EQ(c.clock.now(), c.wall);
}

TEST(wall_clock, does_not_go_below_a_recorded_time) {
  Clocks c;
  c.clock.not_before(c.wall + kHour);
  EXPECT_GE(c.clock.now(), c.wall + kHour);
  EXPECT_EQ(c.clock.behind(), kHour);
  c.clock.not_before(c.wall - kHour);
  EXPECT_GE(c.clock.now(), c.wall + kHour);
}

TEST(wall_clock, an_interrupted_reading_does_not_move_the_clock) {
  Time passed = 0;
  bool interrupted = false;
  const Time start = 1'000'000 * kSecond;
  WallClock clock{{[&] { return start + passed; },
                   [&] {
                     const Time read = passed;
                     // The thread sleeps between the reading of this clock and of the other one.
                     if (std::exchange(interrupted, false)) passed += 10 * kSecond;
                     return read;
                   }}};
  interrupted = true;
  EXPECT_EQ(clock.now(), start + 10 * kSecond);
  EXPECT_EQ(clock.now(), start + 10 * kSecond);
  EXPECT_EQ(clock.behind(), 0);
}

}  // namespace
}  // namespace pawl

#include "base/signal.h"

#include <gtest/gtest.h>

#include <thread>

namespace pawl {

TEST(signal, set_before_the_wait_returns_at_once) {
  Signal s;
  s.set();
  s.wait();
}

TEST(signal, what_was_written_before_set_is_seen_after_wait) {
  for (int i = 0; i < 2000; ++i) {
    Signal s;
    int value = 0;
    std::thread other([&] {
      value = i + 1;
      s.set();
    });
    s.wait();
    EXPECT_EQ(value, i + 1);
    other.join();
  }
}

}  // namespace pawl

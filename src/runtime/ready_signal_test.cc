#include "runtime/ready_signal.h"

#include <gtest/gtest.h>

#include <thread>

namespace pawl {

TEST(signal, a_wait_after_set_returns_at_once) {
  ReadySignal s;
  s.set();
  s.wait();
}

TEST(signal, writes_before_set_are_visible_after_wait) {
  for (int i = 0; i < 2000; ++i) {
    ReadySignal s;
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

TEST(signal, a_wait_with_a_deadline_ends) {
  using namespace std::chrono_literals;
  ReadySignal s;
  auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(s.wait_until(begin + 20ms));
  EXPECT_GE(std::chrono::steady_clock::now(), begin + 20ms);
  std::thread other([&] {
    std::this_thread::sleep_for(10ms);
    s.set();
  });
  EXPECT_TRUE(s.wait_until(std::chrono::steady_clock::now() + 10s));
  EXPECT_LT(std::chrono::steady_clock::now(), begin + 5s);
  other.join();
}

}  // namespace pawl

#include "runtime/pooled_loops.h"

#include <gtest/gtest.h>

#include <atomic>

namespace pawl {
namespace {

TEST(pooled_loops, a_loop_runs_at_first_when_woken_and_when_due) {
  PooledLoops pool(2);
  std::atomic<int> calls = 0;
  std::atomic<Time> due = BackgroundLoop::kNever;
  auto loop = pool.loop("x", [&] {
    ++calls;
    return due.exchange(BackgroundLoop::kNever);
  });
  const auto reached = [&](int count) {
    return pool.wait_until([&] { return calls == count; }, pool.steady_now() + 5 * kSecond);
  };
  EXPECT_TRUE(reached(1));
  const Time then = pool.steady_now() + 30 * kMillisecond;
  due = then;
  loop->wake();
  EXPECT_TRUE(reached(3));
  EXPECT_GE(pool.steady_now(), then);
}

TEST(pooled_loops, a_wake_during_a_step_causes_another) {
  PooledLoops pool(2);
  std::atomic<int> calls = 0;
  std::atomic<BackgroundLoop*> self = nullptr;
  auto loop = pool.loop("x", [&] {
    if (++calls == 1) {
      while (!self)
        std::this_thread::yield();
      self.load()->wake();
    }
    return BackgroundLoop::kNever;
  });
  self = loop.get();
  EXPECT_TRUE(pool.wait_until([&] { return calls == 2; }, pool.steady_now() + 5 * kSecond));
}

TEST(pooled_loops, steps_of_one_loop_never_overlap_and_no_wake_is_lost) {
  PooledLoops pool(4);
  constexpr int kLoops = 50, kWakes = 400;
  struct One {
    std::atomic<int> inside = 0, wanted = 0, seen = 0;
    std::unique_ptr<BackgroundLoop> loop;
  };
  std::vector<One> all(kLoops);
  for (One& one : all)
    one.loop = pool.loop("x", [&one] {
      EXPECT_EQ(++one.inside, 1);
      one.seen = one.wanted.load();
      --one.inside;
      return BackgroundLoop::kNever;
    });
  std::vector<std::thread> wakers;
  for (int w = 0; w < 3; ++w)
    wakers.emplace_back([&] {
      for (int i = 0; i < kWakes; ++i)
        for (One& one : all) {
          ++one.wanted;
          one.loop->wake();
        }
    });
  for (std::thread& waker : wakers)
    waker.join();
  for (One& one : all)
    EXPECT_TRUE(
        pool.wait_until([&] { return one.seen == 3 * kWakes; }, pool.steady_now() + 5 * kSecond));
}

TEST(pooled_loops, a_thousand_loops_share_two_threads) {
  PooledLoops pool(2);
  std::atomic<int> calls = 0;
  std::vector<std::unique_ptr<BackgroundLoop>> loops;
  for (int i = 0; i < 1000; ++i)
    loops.push_back(pool.loop("x", [&] {
      ++calls;
      return pool.steady_now() + 50 * kMillisecond;
    }));
  EXPECT_TRUE(pool.wait_until([&] { return calls >= 5000; }, pool.steady_now() + 20 * kSecond));
}

TEST(pooled_loops, destroying_a_loop_waits_for_its_step) {
  PooledLoops pool(2);
  std::atomic<bool> inside = false, left = false;
  auto loop = pool.loop("x", [&] {
    inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    left = true;
    return Time{0};
  });
  ASSERT_TRUE(pool.wait_until([&] { return inside.load(); }, pool.steady_now() + 5 * kSecond));
  loop.reset();
  EXPECT_TRUE(left);
}

TEST(pooled_loops, prompt_loops_come_first) {
  PooledLoops pool(1);
  std::atomic<bool> go = false;
  std::vector<int> order;
  std::atomic<int> ended = 0;
  auto block = pool.loop("block", [&] {
    while (!go)
      std::this_thread::yield();
    return BackgroundLoop::kNever;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  auto slow = pool.loop("slow", [&] {
    order.push_back(2);
    ++ended;
    return BackgroundLoop::kNever;
  });
  auto prompt = pool.prompt_loop("prompt", [&] {
    order.push_back(1);
    ++ended;
    return BackgroundLoop::kNever;
  });
  go = true;
  ASSERT_TRUE(pool.wait_until([&] { return ended == 2; }, pool.steady_now() + 5 * kSecond));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace pawl

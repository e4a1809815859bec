#include "runtime/pooled_loops.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

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

TEST(pooled_loops, pools_of_one_name_share_their_threads) {
  PooledLoops loops(1);
  std::vector<std::unique_ptr<BackgroundPool>> pools;
  for (int i = 0; i < 8; ++i)
    pools.push_back(loops.pool("reads", 2, 100));
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> ran = 0;
  for (int i = 0; i < 10; ++i)
    for (auto& pool : pools)
      ASSERT_TRUE(pool->add([&] {
        std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
        ++ran;
      }));
  ASSERT_TRUE(loops.wait_until([&] { return ran == 80; }, loops.steady_now() + 10 * kSecond));
  EXPECT_LE(threads.size(), 2u);
}

TEST(pooled_loops, a_part_of_a_pool_ends_without_the_others) {
  PooledLoops loops(1);
  auto one = loops.pool("reads", 1, 100), other = loops.pool("reads", 1, 100);
  std::atomic<bool> go = false, began = false;
  std::atomic<int> ran = 0;
  ASSERT_TRUE(one->add([&] {
    began = true;
    while (!go)
      std::this_thread::yield();
    ++ran;
  }));
  ASSERT_TRUE(loops.wait_until([&] { return began.load(); }, loops.steady_now() + 5 * kSecond));
  // Both wait for the only thread. The first is dropped with its part, the second is not.
  ASSERT_TRUE(one->add([&] { ran += 100; }));
  ASSERT_TRUE(other->add([&] { ran += 10; }));
  std::thread ends([&] { one.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  go = true;
  ends.join();
  EXPECT_GE(ran, 1) << "the running task was waited for";
  ASSERT_TRUE(loops.wait_until([&] { return ran == 11; }, loops.steady_now() + 5 * kSecond));
}

}  // namespace
}  // namespace pawl

#include "runtime/background.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <thread>

namespace pawl {

// Gives up after five seconds; the check that follows then fails.
static void wait_until(const std::function<bool()>& done) {
  for (int i = 0; i < 5000 && !done(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(background, a_loop_runs_when_woken_and_not_otherwise) {
  BackgroundThreads background;
  std::atomic<int> calls{0};
  auto loop = background.loop("test", [&] {
    ++calls;
    return BackgroundLoop::kNever;
  });
  wait_until([&] { return calls == 1; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(calls, 1);
  loop->wake();
  wait_until([&] { return calls == 2; });
  EXPECT_EQ(calls, 2);
}

TEST(background, a_loop_runs_again_when_its_step_is_due) {
  BackgroundThreads background;
  std::atomic<int> calls{0};
  auto loop = background.loop("test", [&]() -> Time {
    if (++calls == 5) return BackgroundLoop::kNever;
    return background.steady_now() + kMillisecond;
  });
  wait_until([&] { return calls == 5; });
  EXPECT_EQ(calls, 5);
}

TEST(background, a_wake_during_the_step_is_not_lost) {
  BackgroundThreads background;
  std::atomic<int> calls{0};
  // The step uses `loop`, which is assigned only after the first step may have begun.
  std::latch made(1);
  std::unique_ptr<BackgroundLoop> loop;
  loop = background.loop("test", [&] {
    made.wait();
    if (++calls == 1) loop->wake();
    return BackgroundLoop::kNever;
  });
  made.count_down();
  wait_until([&] { return calls == 2; });
  EXPECT_EQ(calls, 2);
}

TEST(background, a_full_pool_refuses_tasks) {
  BackgroundThreads background;
  std::latch release(1), started(1);
  auto pool = background.pool("test", 1, 2);
  ASSERT_TRUE(pool->add([&] {
    started.count_down();
    release.wait();
  }));
  started.wait();
  std::atomic<int> ran{0};
  EXPECT_TRUE(pool->add([&] { ++ran; }));
  EXPECT_TRUE(pool->add([&] { ++ran; }));
  EXPECT_FALSE(pool->add([&] { ++ran; }));
  release.count_down();
  wait_until([&] { return ran == 2; });
  EXPECT_EQ(ran, 2);
}

// A long task holds its thread until the test releases it.
static BackgroundPool::Task long_task(std::latch& release, std::atomic<int>& running) {
  return [&] {
    ++running;
    release.wait();
  };
}

TEST(background, one_owner_never_has_all_threads_of_a_pool) {
  BackgroundThreads background;
  std::latch release(1);
  std::atomic<int> running{0}, ran{0};
  auto pool = background.pool("test", 3, 100);
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(pool->add("loud", long_task(release, running)));
  wait_until([&] { return running == 2; });
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(pool->add("quiet", [&] { ++ran; }));
  wait_until([&] { return ran == 5; });
  EXPECT_EQ(ran, 5);
  EXPECT_EQ(running, 2);
  release.count_down();
  wait_until([&] { return running == 10; });
  EXPECT_EQ(running, 10);
}

TEST(background, of_two_owners_the_one_that_used_less_comes_first) {
  BackgroundThreads background;
  std::latch release(1), started(1);
  std::mutex mutex;
  std::string order;
  auto note = [&](char c) {
    return [&, c] {
      std::lock_guard lock(mutex);
      order += c;
    };
  };
  auto pool = background.pool("test", 1, 100);
  ASSERT_TRUE(pool->add("loud", [&] {
    started.count_down();
    release.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }));
  started.wait();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(pool->add("loud", note('l')));
  ASSERT_TRUE(pool->add("quiet", note('q')));
  release.count_down();
  wait_until([&] {
    std::lock_guard lock(mutex);
    return order.size() == 4;
  });
  EXPECT_EQ(order, "qlll");
}

TEST(background, one_owner_fills_a_quarter_of_the_queue) {
  BackgroundThreads background;
  std::latch release(1), started(1);
  auto pool = background.pool("test", 1, 8);
  ASSERT_TRUE(pool->add([&] {
    started.count_down();
    release.wait();
  }));
  started.wait();
  EXPECT_TRUE(pool->add("loud", [] {}));
  EXPECT_TRUE(pool->add("loud", [] {}));
  EXPECT_FALSE(pool->add("loud", [] {}));
  EXPECT_TRUE(pool->add("quiet", [] {}));
  release.count_down();
}

TEST(background, a_pool_that_ends_drops_waiting_tasks) {
  BackgroundThreads background;
  std::latch release(1), started(1);
  std::atomic<int> ran{0};
  auto pool = background.pool("test", 1, 10);
  pool->add([&] {
    started.count_down();
    release.wait();
  });
  started.wait();
  pool->add([&] { ++ran; });
  std::thread ender([&] { pool.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  release.count_down();
  ender.join();
  EXPECT_EQ(ran, 0);
}

TEST(scheduler, a_wait_ends_when_its_condition_holds_or_its_deadline_has_come) {
  BackgroundThreads scheduler;
  int asked = 0;
  EXPECT_TRUE(scheduler.wait_until([&] { return ++asked == 3; }, BackgroundLoop::kNever));
  EXPECT_EQ(asked, 3);
  const Time began = scheduler.steady_now();
  EXPECT_FALSE(scheduler.wait_until([] { return false; }, began + 5 * kMillisecond));
  EXPECT_GE(scheduler.steady_now() - began, 5 * kMillisecond);
}

TEST(scheduler, work_beside_runs_while_its_caller_goes_on) {
  BackgroundThreads scheduler;
  std::latch goes_on(1);
  Scheduler::Work wait = scheduler.beside([&]() -> Result<void> {
    goes_on.wait();
    return fail(Code::invalid, "SEEN", "the result reaches the caller");
  });
  goes_on.count_down();
  auto done = wait();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason, "SEEN");
}

}  // namespace pawl

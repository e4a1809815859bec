// CatchUp on a background that the test drives by hand.

#include "faces/lifecycle/read/catch_up.h"

#include <gtest/gtest.h>

#include <vector>

namespace pawl::lifecycle {
namespace {

using Next = CatchUp::Next;

// Runs one loop, a step at a time.
class ManualBackground final : public Background {
 public:
  Time steady_now() const override { return now; }
  std::unique_ptr<BackgroundLoop> loop(std::string, Step step) override {
    step_ = std::move(step);
    return std::make_unique<Loop>(*this);
  }
  std::unique_ptr<BackgroundPool> pool(std::string, size_t, size_t) override { return nullptr; }
  Time run_step() { return step_(); }

  Time now = 1000;
  int wakes = 0;

 private:
  struct Loop final : BackgroundLoop {
    explicit Loop(ManualBackground& background) : background(background) {}
    void wake() override { ++background.wakes; }
    ManualBackground& background;
  };
  Step step_;
};

TEST(catch_up, sleeps_until_a_task_is_added) {
  ManualBackground background;
  CatchUp catch_up(background);
  EXPECT_EQ(background.run_step(), BackgroundLoop::kNever);
  catch_up.add([] { return Next::done; });
  EXPECT_EQ(background.wakes, 1);
}

TEST(catch_up, calls_a_task_until_it_is_done) {
  ManualBackground background;
  CatchUp catch_up(background);
  int pages = 0;
  catch_up.add([&] { return ++pages < 3 ? Next::more : Next::done; });
  EXPECT_EQ(background.run_step(), background.now) << "more to send: again at once";
  EXPECT_EQ(background.run_step(), background.now);
  EXPECT_EQ(background.run_step(), BackgroundLoop::kNever);
  background.run_step();
  EXPECT_EQ(pages, 3);
}

TEST(catch_up, retries_a_slow_watcher_later_without_delaying_others) {
  ManualBackground background;
  CatchUp catch_up(background);
  int slow = 0, fast = 0;
  catch_up.add([&] {
    ++slow;
    return Next::wait;
  });
  EXPECT_GT(background.run_step(), background.now) << "nothing to do before the watcher has read";
  catch_up.add([&] {
    ++fast;
    return Next::more;
  });
  EXPECT_EQ(background.run_step(), background.now);
  EXPECT_EQ(slow, 2);
  EXPECT_EQ(fast, 1);
}

}  // namespace
}  // namespace pawl::lifecycle

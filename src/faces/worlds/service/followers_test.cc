// Followers on a clock that the test moves.

#include "faces/worlds/service/followers.h"

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

// Calls the step of its one loop when the test says so.
struct ManualBackground final : Background {
  struct Loop final : BackgroundLoop {
    explicit Loop(ManualBackground& background) : owner(background) {}
    ~Loop() override { owner.step = nullptr; }
    void wake() override { ++owner.wakes; }
    ManualBackground& owner;
  };
  Time steady_now() const override { return now; }
  std::unique_ptr<BackgroundLoop> loop(std::string, Step to_call) override {
    step = std::move(to_call);
    return std::make_unique<Loop>(*this);
  }
  std::unique_ptr<BackgroundPool> pool(std::string, size_t, size_t) override { return nullptr; }

  Time now = 100;
  int wakes = 0;
  Step step;
};

TEST(followers, each_is_stepped_when_its_time_has_come) {
  Stage stage;
  ManualBackground background;
  Followers followers(stage, background);
  int calls = 0;
  followers.add({"t", "w"}, [&](bool) -> std::optional<Time> {
    return ++calls < 3 ? std::optional<Time>(background.now + 50) : std::nullopt;
  });
  EXPECT_EQ(background.step(), 150);
  EXPECT_EQ(calls, 1);
  background.now = 149;
  EXPECT_EQ(background.step(), 150);
  EXPECT_EQ(calls, 1);
  background.now = 150;
  EXPECT_EQ(background.step(), 200);
  background.now = 200;
  EXPECT_EQ(background.step(), BackgroundLoop::kNever);  // the third call was the last
  EXPECT_EQ(calls, 3);
}

TEST(followers, stop_steps_each_once_more) {
  Stage stage;
  ManualBackground background;
  Followers followers(stage, background);
  std::vector<bool> seen;
  auto step = [&](bool stopping) -> std::optional<Time> {
    seen.push_back(stopping);
    return background.now + 50;
  };
  followers.add({"t", "w"}, step);
  followers.add({"t", "v"}, step);
  EXPECT_EQ(background.wakes, 1);  // the second follower woke the loop
  background.step();
  followers.stop();
  EXPECT_EQ(seen, (std::vector<bool>{false, false, true, true}));
  EXPECT_FALSE(background.step);
  followers.add({"t", "w"}, step);  // too late: stepped once, at once
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_TRUE(seen.back());
}

}  // namespace
}  // namespace pawl::worlds

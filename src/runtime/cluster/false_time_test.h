#pragma once
// A Scheduler of one node on a false clock: its loops run when the test lets time pass. The clock
// may run faster or slower than that of others, and the node may be paused, as by SIGSTOP: its
// clock goes on and its loops do not.

#include <algorithm>
#include <vector>

#include "runtime/background.h"

namespace pawl {

class FalseTime final : public Scheduler {
 public:
  explicit FalseTime(double rate = 1) : rate_(rate) {}
  void pause(bool on) { paused_ = on; }
  bool paused() const { return paused_; }
  // Lets time pass, and runs what is due.
  void pass(Time time) {
    now_ += static_cast<Time>(static_cast<double>(time) * rate_);
    if (!paused_) run_due();
  }
  void run_due() {
    for (bool ran = true; ran;) {
      ran = false;
      // A step may make and destroy loops.
      for (Loop* loop : std::vector<Loop*>(loops_)) {
        if (!std::ranges::count(loops_, loop) || loop->due > now_) continue;
        loop->due = BackgroundLoop::kNever;
        const Time next = loop->step();
        loop->due = std::min(loop->due, next);
        ran = true;
      }
    }
  }

  Time steady_now() const override { return now_; }
  std::unique_ptr<BackgroundLoop> loop(std::string, Step step) override {
    return std::make_unique<Loop>(*this, std::move(step));
  }
  std::unique_ptr<BackgroundLoop> prompt_loop(std::string name, Step step) override {
    return loop(std::move(name), std::move(step));
  }
  std::unique_ptr<BackgroundPool> pool(std::string, size_t, size_t) override { return nullptr; }
  Time wall_now() const override { return now_; }
  int64_t coarse_ms() const override { return now_ / kMillisecond; }
  Time processor_time() const override { return 0; }
  unsigned processors() const override { return 1; }
  bool wait_until(const std::function<bool()>& ready, Time until) override {
    while (!ready() && now_ < until)
      pass(kMillisecond);
    return ready();
  }
  Work beside(Work work) override {
    return [done = work()] { return done; };
  }

 private:
  struct Loop final : BackgroundLoop {
    Loop(FalseTime& own, Step what) : time(own), step(std::move(what)) {
      time.loops_.push_back(this);
    }
    ~Loop() override { std::erase(time.loops_, this); }
    void wake() override { due = 0; }
    FalseTime& time;
    Step step;
    Time due = 0;
  };
  const double rate_;
  Time now_ = kSecond;
  bool paused_ = false;
  std::vector<Loop*> loops_;
};

}  // namespace pawl

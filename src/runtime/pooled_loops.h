#pragma once
// A Scheduler for many shards: its loops share a few threads, where BackgroundThreads gives each
// loop a thread of its own. Pools of the same name share the threads and the limits of the first of
// them. The clocks are those of BackgroundThreads.
//
// Steps may block on the disk, so there are more threads than processors. A step must not wait for
// another loop: the threads may all be taken.

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runtime/background.h"

namespace pawl {

class PooledLoops final : public Scheduler {
 public:
  explicit PooledLoops(size_t threads);
  ~PooledLoops() override;  // all loops must have been destroyed

  std::unique_ptr<BackgroundLoop> loop(std::string name, Step step) override;
  // Loops that requests wait for come before the others.
  std::unique_ptr<BackgroundLoop> prompt_loop(std::string name, Step step) override;

  std::unique_ptr<BackgroundPool> pool(std::string name, size_t threads,
                                       size_t max_waiting) override;
  Time steady_now() const override { return own_.steady_now(); }
  Time wall_now() const override { return own_.wall_now(); }
  unsigned processors() const override { return own_.processors(); }
  int64_t coarse_ms() const override { return own_.coarse_ms(); }
  Time processor_time() const override { return own_.processor_time(); }
  bool wait_until(const std::function<bool()>& ready, Time deadline) override {
    return own_.wait_until(ready, deadline);
  }
  Work beside(Work work) override { return own_.beside(std::move(work)); }

 private:
  class Loop;
  void run();
  // These need mutex_.
  void make_ready(Loop& loop);
  void collect_due(Time now);
  Loop* next();
  void rest(Loop& loop, Time due);

  BackgroundThreads own_;
  std::mutex pools_mutex_;
  std::map<std::string, std::weak_ptr<BackgroundPool>> pools_;  // with pools_mutex_
  std::mutex mutex_;
  std::condition_variable changed_;  // something became ready, or the first due time changed
  std::condition_variable ended_;    // a step has ended
  std::deque<Loop*> ready_, ready_promptly_;
  std::set<std::pair<Time, Loop*>> due_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace pawl

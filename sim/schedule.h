#pragma once
// The schedule of a simulated world: threads, pools and clocks of the code that ships, on one
// thread and from one seed. A step is one call of a loop, one task of a pool or one posted task.
// Among the steps that are ready the dice choose; when none is ready, time jumps to the next one.

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "runtime/background.h"
#include "storage/file/task_thread.h"

namespace pawl::sim {

class Schedule final : public Scheduler {
 public:
  explicit Schedule(uint64_t seed) : random_(seed) {}

  uint64_t roll(uint64_t below) { return random_() % below; }
  bool chance(unsigned percent) { return roll(100) < percent; }
  bool one_in(uint64_t n) { return roll(n) == 0; }
  std::array<uint64_t, 2> dice() { return {random_(), random_()}; }
  uint32_t salt() { return static_cast<uint32_t>(random_()); }

  // Time that has passed since the world began. Reading it is free of side effects.
  Time elapsed() const { return now_; }
  void set_wall(Time forward) { wall_offset_ += forward; }

  // Runs the task once, `delay` from now or later. Tasks may run while another step waits for the
  // disk, unless they are storage tasks.
  using Task = std::function<void()>;
  void after(Time delay, Task task);
  // Runs one step, or lets time jump to the next one. Returns false when nothing waits.
  bool step();
  // Runs steps until this much time has passed.
  void run_for(Time time);
  // The caller waits for `time`, on a disk for example. Other steps run meanwhile.
  void meanwhile(Time time);
  // A frozen schedule runs nothing: the process is dead and only its memory is released.
  void freeze(bool frozen) { frozen_ = frozen; }
  uint64_t steps() const { return steps_; }
  // Called when a thread begins to wait for something other than the disk: it may crash the world.
  std::function<void()> at_wait{};
  // A background job of the journal runs now.
  bool in_storage_job() const { return in_storage_job_; }

  // The queue for background jobs of a file journal.
  std::unique_ptr<TaskQueue> storage_tasks();

  Time steady_now() const override;
  std::unique_ptr<BackgroundLoop> loop(std::string name, Step step) override;
  std::unique_ptr<BackgroundPool> pool(std::string name, size_t threads,
                                       size_t max_waiting) override;
  Time wall_now() const override { return steady_now() + wall_offset_; }
  unsigned processors() const override { return 2; }
  int64_t coarse_ms() const override { return now_ / kMillisecond; }
  Time processor_time() const override { return steady_now(); }
  std::unique_ptr<BackgroundLoop> prompt_loop(std::string name, Step step) override {
    return loop(std::move(name), std::move(step));
  }
  bool wait_until(const std::function<bool()>& ready, Time deadline) override;
  bool await(ReadySignal& signal) override {
    return wait_until([&] { return signal.is_set(); }, BackgroundLoop::kNever);
  }
  Work beside(Work work) override;

 private:
  struct LoopState {
    std::string name;
    Step step;
    Time due = 0;
    bool running = false;
    bool ended = false;
  };
  class Loop;
  class Pool;
  class StorageTasks;
  struct StorageState {
    std::deque<std::function<void()>> jobs;
  };
  // True when a step ran.
  bool run_ready();
  // The loop with this number among those that are due, and the queue among those with jobs.
  void run_ready_loop(size_t number, Time now);
  void run_storage_job(size_t number);
  Time next_due() const;
  void run_loop(const std::shared_ptr<LoopState>& loop);

  std::mt19937_64 random_;
  mutable Time now_ = 0;
  Time wall_offset_ = 1'900'000'000 * kSecond;
  // Shared with their owners, which may end a loop while it is chosen.
  std::vector<std::shared_ptr<LoopState>> loops_;
  std::vector<std::shared_ptr<StorageState>> storage_;
  std::map<std::pair<Time, uint64_t>, Task> tasks_, pool_tasks_;
  uint64_t next_task_ = 0;
  uint64_t steps_ = 0;
  unsigned depth_ = 0;  // how many steps wait while others run
  bool in_storage_job_ = false;
  bool frozen_ = false;
};

}  // namespace pawl::sim

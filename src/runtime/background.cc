#include "runtime/background.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "runtime/monotonic.h"
#include "runtime/wall_clock.h"

namespace pawl {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Shown by `top -H` and debuggers; Linux keeps 15 characters.
void name_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

// One thread a loop. `woken_` is cleared before the step runs, so a wake() during the step causes
// another call.
class ThreadLoop final : public BackgroundLoop {
 public:
  enum class Wakes { normally, promptly };
  ThreadLoop(std::string name, Background::Step step, Wakes wakes)
      : name_(std::move(name)), step_(std::move(step)), thread_([this, wakes] {
          name_thread(name_);
          if (wakes == Wakes::promptly) use_short_time_slices();
          run();
        }) {}
  ~ThreadLoop() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  // The flag is set under the lock, so a wake between the step and the wait is not lost.
  void wake() override {
    {
      std::lock_guard lock(mutex_);
      if (woken_) return;
      woken_ = true;
    }
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      woken_ = false;
      lock.unlock();
      const Time due = step_();
      lock.lock();
      const auto ready = [this] { return woken_ || stopping_; };
      if (due == kNever)
        changed_.wait(lock, ready);
      else
        // A time that has passed already does not wait at all.
        changed_.wait_until(lock, SteadyClock::time_point(std::chrono::nanoseconds(due)), ready);
    }
  }

  const std::string name_;
  Background::Step step_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses everything above
};

Time steady() { return std::chrono::nanoseconds(SteadyClock::now().time_since_epoch()).count(); }

// An owner that used the pool for less than this is light: it may take the last free thread.
constexpr Time kLightUse = kSecond;
// The use of an owner halves in this time.
constexpr Time kUseHalves = 20 * kSecond;
// Owners that are remembered although none of their tasks waits or runs. Beyond, those that are
// light are forgotten.
constexpr size_t kRememberedOwners = 1000;

// The tasks of one owner.
struct PoolLane {
  std::deque<BackgroundPool::Task> waiting;
  size_t running = 0;
  Time used = 0;     // time of the threads, until `counted`
  Time counted = 0;  // when `used` was last brought up to date

  // Brings `used` up to now. Running tasks count while they run.
  void count(Time now) {
    const double halves = static_cast<double>(now - counted) / static_cast<double>(kUseHalves);
    used = static_cast<Time>(static_cast<double>(used) * std::exp2(-halves));
    used += static_cast<Time>(running) * (now - counted);
    counted = now;
  }
};

// Threads that share lanes of tasks. The threads are started last, after the members they use are
// made.
class ThreadPool final : public BackgroundPool {
 public:
  ThreadPool(const std::string& name, size_t threads, size_t max_waiting)
      : max_waiting_(max_waiting), size_(threads) {
    for (size_t i = 0; i < threads; ++i)
      threads_.emplace_back([this, name] {
        name_thread(name);
        step_aside();
        run();
      });
  }
  ~ThreadPool() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      for (auto& [owner, lane] : lanes_)
        lane.waiting.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_)
      thread.join();
  }
  bool add(std::string_view owner, Task task) override {
    {
      std::lock_guard lock(mutex_);
      if (stopping_ || waiting_ >= max_waiting_) return false;
      PoolLane& lane = lane_of(owner);
      const size_t share = owner.empty() ? max_waiting_ : std::max<size_t>(1, max_waiting_ / 4);
      if (lane.waiting.size() >= share) return false;
      lane.waiting.push_back(std::move(task));
      ++waiting_;
    }
    // All: a thread that is woken may be one that this owner must not have.
    changed_.notify_all();
    return true;
  }
  bool stopping() const override {
    std::lock_guard lock(mutex_);
    return stopping_;
  }

 private:
  using Lanes = std::map<std::string, PoolLane, std::less<>>;

  PoolLane& lane_of(std::string_view owner) {
    auto found = lanes_.find(owner);
    if (found != lanes_.end()) return found->second;
    if (lanes_.size() >= kRememberedOwners) forget_idle();
    PoolLane& lane = lanes_[std::string(owner)];
    lane.counted = steady();
    return lane;
  }

  void forget_idle() {
    const Time now = steady();
    for (auto row = lanes_.begin(); row != lanes_.end();) {
      PoolLane& lane = row->second;
      lane.count(now);
      const bool idle = lane.waiting.empty() && !lane.running && lane.used < kLightUse;
      row = idle ? lanes_.erase(row) : std::next(row);
    }
  }

  // The lane whose task runs next on a thread that is free; null when none may have it.
  PoolLane* next() {
    const Time now = steady();
    const bool last_free = size_ > 1 && running_ + 1 >= size_;
    PoolLane* best = nullptr;
    for (auto& [owner, lane] : lanes_) {
      if (lane.waiting.empty()) continue;
      lane.count(now);
      // Tasks of no owner are the pool's only use, and may have all of it.
      const bool kept_back =
          last_free && !owner.empty() && (lane.used >= kLightUse || lane.running + 1 >= size_);
      if (!kept_back && (!best || lane.used < best->used)) best = &lane;
    }
    return best;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      PoolLane* lane = nullptr;
      changed_.wait(lock, [&] { return stopping_ || (lane = next()) != nullptr; });
      if (stopping_) return;
      Task task = std::move(lane->waiting.front());
      lane->waiting.pop_front();
      --waiting_;
      ++lane->running;
      ++running_;
      lock.unlock();
      task();
      task = {};
      lock.lock();
      lane->count(steady());
      --lane->running;
      --running_;
      // Another owner may have this thread now.
      if (waiting_) changed_.notify_all();
    }
  }

  const size_t max_waiting_, size_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Lanes lanes_;  // a lane is not removed while one of its tasks waits or runs
  size_t waiting_ = 0, running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

// The same clock that ThreadLoop waits on.
Time BackgroundThreads::steady_now() const { return steady(); }

std::unique_ptr<BackgroundLoop> BackgroundThreads::loop(std::string name, Step step) {
  return std::make_unique<ThreadLoop>(std::move(name), std::move(step),
                                      ThreadLoop::Wakes::normally);
}

std::unique_ptr<BackgroundLoop> BackgroundThreads::prompt_loop(std::string name, Step step) {
  return std::make_unique<ThreadLoop>(std::move(name), std::move(step),
                                      ThreadLoop::Wakes::promptly);
}

std::unique_ptr<BackgroundPool> BackgroundThreads::pool(std::string name, size_t threads,
                                                        size_t max_waiting) {
  return std::make_unique<ThreadPool>(name, threads, max_waiting);
}

Time BackgroundThreads::wall_now() const { return system_now(); }

unsigned BackgroundThreads::processors() const { return std::thread::hardware_concurrency(); }

int64_t BackgroundThreads::coarse_ms() const { return monotonic_ms(); }

Time BackgroundThreads::processor_time() const {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

bool BackgroundThreads::wait_until(const std::function<bool()>& ready, Time deadline) {
  while (!ready()) {
    if (steady() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

Scheduler::Work BackgroundThreads::beside(Work work) {
  // Shared: the function that waits may be copied.
  auto running =
      std::make_shared<std::future<Result<void>>>(std::async(std::launch::async, std::move(work)));
  return [running] { return running->get(); };
}

}  // namespace pawl

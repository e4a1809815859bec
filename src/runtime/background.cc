#include "runtime/background.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

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
  ThreadLoop(std::string name, Background::Step step)
      : name_(std::move(name)), step_(std::move(step)), thread_([this] { run(); }) {}
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
      woken_ = true;
    }
    changed_.notify_all();
  }

 private:
  void run() {
    name_thread(name_);
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

// Threads that share one queue. The threads are started last, after the members they use are made.
class ThreadPool final : public BackgroundPool {
 public:
  ThreadPool(const std::string& name, size_t threads, size_t max_waiting)
      : max_waiting_(max_waiting) {
    for (size_t i = 0; i < threads; ++i)
      threads_.emplace_back([this, name] {
        name_thread(name);
        run();
      });
  }
  ~ThreadPool() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      waiting_.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_)
      thread.join();
  }
  bool add(Task task) override {
    {
      std::lock_guard lock(mutex_);
      if (stopping_ || waiting_.size() >= max_waiting_) return false;
      waiting_.push_back(std::move(task));
    }
    changed_.notify_one();
    return true;
  }
  bool stopping() const override {
    std::lock_guard lock(mutex_);
    return stopping_;
  }

 private:
  void run() {
    while (true) {
      Task task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
        if (stopping_) return;
        task = std::move(waiting_.front());
        waiting_.pop_front();
      }
      task();
    }
  }

  const size_t max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

// The same clock that ThreadLoop waits on.
Time BackgroundThreads::steady_now() const {
  return std::chrono::nanoseconds(SteadyClock::now().time_since_epoch()).count();
}

std::unique_ptr<BackgroundLoop> BackgroundThreads::loop(std::string name, Step step) {
  return std::make_unique<ThreadLoop>(std::move(name), std::move(step));
}

std::unique_ptr<BackgroundPool> BackgroundThreads::pool(std::string name, size_t threads,
                                                        size_t max_waiting) {
  return std::make_unique<ThreadPool>(name, threads, max_waiting);
}

}  // namespace pawl

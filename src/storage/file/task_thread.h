#pragma once
// A TaskQueue runs jobs one after the other in the background. The destructor waits for the running
// job and drops the jobs that wait, so a job must be one that may be left undone. TaskThread runs
// them on a thread with low priority, which starts with the first job; the simulator runs them on
// its schedule.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace pawl {

class TaskQueue {
 public:
  virtual ~TaskQueue() = default;
  virtual void add(std::function<void()> job) = 0;
  virtual void add_first(std::function<void()> job) = 0;  // runs before the jobs that wait
  virtual void finish() = 0;                              // waits until every job is done
};

class TaskThread final : public TaskQueue {
 public:
  TaskThread() = default;
  TaskThread(const TaskThread&) = delete;
  ~TaskThread() override;
  void add(std::function<void()> job) override;
  void add_first(std::function<void()> job) override;
  void finish() override;

 private:
  void start();  // the caller holds mutex_
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace pawl

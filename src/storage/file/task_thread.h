#pragma once
// TaskThread runs jobs one after the other on a thread with low priority. The thread starts with
// the first job. The destructor waits for the running job and drops the jobs that wait, so a job
// must be one that may be left undone.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace pawl {

class TaskThread {
 public:
  TaskThread() = default;
  TaskThread(const TaskThread&) = delete;
  ~TaskThread();
  void add(std::function<void()> job);
  void add_first(std::function<void()> job);  // runs before the jobs that wait
  void finish();                              // waits until every job is done

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

#pragma once
// One thread that does jobs in order, begun with the first of them. Jobs still waiting when it ends
// are dropped: they must be ones that may be done again or not at all.

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
  void add_first(std::function<void()> job);  // before those that wait
  void finish();                              // waits until nothing is left to do

 private:
  void start();  // with the mutex held
  void run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace pawl

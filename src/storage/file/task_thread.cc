#include "storage/file/task_thread.h"

#include "base/thread.h"

namespace pawl {

TaskThread::~TaskThread() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    jobs_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TaskThread::add(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    start();
  }
  changed_.notify_all();
}

void TaskThread::add_first(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_front(std::move(job));
    start();
  }
  changed_.notify_all();
}

void TaskThread::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void TaskThread::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void TaskThread::run() {
  lower_thread_priority();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace pawl

#include "faces/lifecycle/read/teller.h"

#include <chrono>

namespace pawl::lifecycle {

// A stream does not say when it has room again: it is asked this often.
static constexpr std::chrono::milliseconds kComeBack{5};

Teller::~Teller() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Teller::add(Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  wake_.notify_all();
}

void Teller::run() {
  std::list<Task> mine;
  bool moved = true;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (mine.empty())
        wake_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
      else if (!moved)
        wake_.wait_for(lock, kComeBack, [&] { return ending_ || !tasks_.empty(); });
      if (ending_) return;
      mine.splice(mine.end(), tasks_);
    }
    moved = false;
    for (auto task = mine.begin(); task != mine.end();) {
      Next next = (*task)();
      moved = moved || next == Next::more;
      task = next == Next::done ? mine.erase(task) : std::next(task);
    }
  }
}

}  // namespace pawl::lifecycle

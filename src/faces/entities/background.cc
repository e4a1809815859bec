#include "faces/entities/background.h"

namespace pawl::entities {

void Background::start() {
  for (size_t i = 0; i < size_; ++i)
    threads_.emplace_back([this] { loop(); });
}

void Background::stop() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    line_.clear();
  }
  wake_.notify_all();
  for (std::thread& t : threads_)
    t.join();
  threads_.clear();
}

bool Background::stopping() const {
  std::lock_guard lock(mutex_);
  return ending_;
}

bool Background::add(Work work) {
  {
    std::lock_guard lock(mutex_);
    if (ending_ || line_.size() >= kWaiting) return false;
    line_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

void Background::loop() {
  while (true) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return ending_ || !line_.empty(); });
      if (ending_) return;
      work = std::move(line_.front());
      line_.pop_front();
    }
    work();
  }
}

}  // namespace pawl::entities

#include "faces/worlds/followers.h"

#include <algorithm>

#include "kernel/frame.h"

namespace pawl::worlds {

Followers::Followers(KernelAccess& kernel)
    : kernel_(kernel), watch_(kernel.watch([this](const Frame& frame) { snapshot(frame); })) {}

void Followers::add(const WorldId& world_id, Step step) {
  std::unique_lock lock(mutex_);
  if (ending_) {
    lock.unlock();
    step(true);
    return;
  }
  all_.push_back({head_key(world_id), std::move(step), Clock::now()});
  any_ = true;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  wake_.notify_all();
}

void Followers::stop() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (uint64_t number = std::exchange(watch_, 0)) kernel_.unwatch(number);
}

// On the committer's thread.
void Followers::snapshot(const Frame& frame) {
  if (!any_ || frame.program != kProgram) return;
  std::lock_guard lock(mutex_);
  bool any = false;
  for (One& one : all_) {
    auto at = std::lower_bound(frame.writes.begin(), frame.writes.end(), one.head,
                               [](const Frame::Write& w, const Key& key) { return w.key < key; });
    if (at != frame.writes.end() && at->key == one.head) one.moved = any = true;
  }
  if (any) wake_.notify_all();
}

void Followers::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    const bool over = ending_;
    auto next = Clock::time_point::max();
    for (auto it = all_.begin(); it != all_.end();) {
      if (!over && !it->moved && it->due > Clock::now()) {
        next = std::min(next, (it++)->due);
        continue;
      }
      it->moved = false;
      lock.unlock();
      auto again = it->step(over);
      lock.lock();
      if (!again || over)
        it = all_.erase(it);
      else
        it->due = *again, next = std::min(next, it->moved ? Clock::now() : it->due), ++it;
    }
    any_ = !all_.empty();
    if (over && all_.empty()) return;
    const auto due = [&] {
      return ending_ || std::any_of(all_.begin(), all_.end(), [](const One& one) {
               return one.moved || one.due <= Clock::now();
             });
    };
    if (next == Clock::time_point::max())
      wake_.wait(lock, due);
    else
      wake_.wait_until(lock, next, due);
  }
}

}  // namespace pawl::worlds

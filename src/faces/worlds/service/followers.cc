#include "faces/worlds/service/followers.h"

#include <algorithm>

#include "kernel/frame.h"

namespace pawl::worlds {

Followers::Followers(KernelAccess& kernel, Background& background)
    : kernel_(kernel),
      background_(background),
      watch_(kernel.watch([this](const Frame& frame) { watch_frame(frame); })) {}

void Followers::add(const WorldId& world_id, Step step) {
  std::unique_lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    step(true);
    return;
  }
  all_.push_back({head_key(world_id), std::move(step), now()});
  any_ = true;
  if (loop_)
    loop_->wake();
  else
    loop_ = background_.loop("worlds follow", [this] { return step_due(); });
}

// The order matters: end the loop, so that no step runs; stop the watch, so that no frame wakes it;
// then answer the followers, without the lock as in step_due().
void Followers::stop() {
  std::unique_ptr<BackgroundLoop> loop;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    loop = std::move(loop_);
  }
  loop.reset();  // waits for a running step
  if (uint64_t number = std::exchange(watch_, 0)) kernel_.unwatch(number);
  std::list<Follower> left;
  {
    std::lock_guard lock(mutex_);
    left.swap(all_);
  }
  for (Follower& follower : left)
    follower.step(true);
}

// Called on the committer's thread.
void Followers::watch_frame(const Frame& frame) {
  if (!any_ || frame.program != kProgram) return;
  std::lock_guard lock(mutex_);
  bool any = false;
  for (Follower& follower : all_) {
    // The writes of a frame are sorted by key.
    auto at = std::lower_bound(frame.writes.begin(), frame.writes.end(), follower.head,
                               [](const Frame::Write& w, const Key& key) { return w.key < key; });
    if (at == frame.writes.end() || at->key != follower.head) continue;
    follower.moved = true;
    any = true;
  }
  if (any && loop_) loop_->wake();
}

// Steps every follower that is due or whose world moved. Returns when the next one is due.
Time Followers::step_due() {
  Time next = BackgroundLoop::kNever;
  std::unique_lock lock(mutex_);
  for (auto it = all_.begin(); it != all_.end() && !stopping_;) {
    if (it->moved || it->due <= now()) {
      it->moved = false;
      lock.unlock();
      // Without the lock: the step reads rows and may take long. `it` stays valid, because only
      // this loop erases.
      auto again = it->step(false);
      lock.lock();
      if (!again) {
        it = all_.erase(it);
        continue;
      }
      it->due = *again;
    }
    next = std::min(next, it->due);
    ++it;
  }
  any_ = !all_.empty();
  return next;
}

}  // namespace pawl::worlds

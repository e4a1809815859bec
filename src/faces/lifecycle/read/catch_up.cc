#include "faces/lifecycle/read/catch_up.h"

namespace pawl::lifecycle {

// A stream does not report when it has room again, so its task is called this often.
static constexpr Time kRetryAfter = 5 * kMillisecond;

CatchUp::CatchUp(Background& background)
    : background_(background),
      loop_(background.loop("catch-up", [this] { return send_pages(); })) {}

void CatchUp::add(Task task) {
  {
    std::lock_guard lock(mutex_);
    added_.push_back(std::move(task));
  }
  loop_->wake();
}

// One page of every task. Returns when to send the next ones.
Time CatchUp::send_pages() {
  {
    std::lock_guard lock(mutex_);
    running_.splice(running_.end(), added_);
  }
  bool more = false;
  for (auto task = running_.begin(); task != running_.end();) {
    Next next = (*task)();
    more = more || next == Next::more;
    task = next == Next::done ? running_.erase(task) : std::next(task);
  }
  if (running_.empty()) return BackgroundLoop::kNever;
  return background_.steady_now() + (more ? 0 : kRetryAfter);
}

}  // namespace pawl::lifecycle

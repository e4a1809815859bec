#include "runtime/clock.h"

namespace pawl {

// Delay before a failed receipt is retried. The effect stays open until one succeeds.
static constexpr Time kRetry = kSecond;

void Clock::start() {
  std::lock_guard lock(mutex_);
  loop_ = background_.loop("clock", [this] { return step(); });
}

void Clock::stop() {
  std::unique_ptr<BackgroundLoop> ended;  // destroyed without the lock, which its step takes
  std::lock_guard lock(mutex_);
  ending_ = true;
  ended = std::move(loop_);
}

void Clock::wake() {
  if (loop_) loop_->wake();
}

void Clock::opened(const EffectPtr& effect) {
  std::lock_guard lock(mutex_);
  bool first = due_.empty() || effect->due < due_.begin()->first;
  due_.emplace(effect->due, effect->id);
  if (first) wake();
}

void Clock::closed(const Effect& effect) {
  std::lock_guard lock(mutex_);
  due_.erase({effect.due, effect.id});
}

void Clock::flushed() {}

size_t Clock::waiting() const {
  std::lock_guard lock(mutex_);
  return due_.size();
}

Time Clock::lag() const {
  std::lock_guard lock(mutex_);
  return due_.empty() ? 0 : std::max<Time>(0, kernel_.now() - due_.begin()->first);
}

Time Clock::step() {
  std::unique_lock lock(mutex_);
  while (!ending_ && !due_.empty() && in_flight_ < kInFlight) {
    const Time now = kernel_.now();
    const Time wait = due_.begin()->first - now;
    // A minute at most: the system clock may be set in the meantime.
    if (wait > 0) return background_.steady_now() + std::min(wait, 60 * kSecond);
    std::vector<Entry> ripe;
    while (!due_.empty() && due_.begin()->first <= now && in_flight_ < kInFlight) {
      ripe.push_back(std::move(due_.extract(due_.begin()).value()));
      ++in_flight_;
    }
    lock.unlock();
    for (const Entry& entry : ripe)
      fire(entry);
    lock.lock();
  }
  return BackgroundLoop::kNever;
}

void Clock::fire(const Entry& entry) {
  Input input;
  input.verb = "timer";
  input.settles = entry.second;
  input.caller.user = "~clock";
  kernel_.submit(std::move(input), [this, entry](Result<Answer> answer) {
    std::lock_guard lock(mutex_);
    --in_flight_;
    if (!answer && !answer.error().is(kEffectNotOpen) && !answer.error().is(kStopping) &&
        !answer.error().is(kJournalFailed) && !answer.error().is(kShardMoved))
      due_.emplace(kernel_.now() + kRetry, entry.second);
    wake();
  });
}

}  // namespace pawl

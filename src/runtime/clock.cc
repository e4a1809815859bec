#include "runtime/clock.h"

#include <chrono>

namespace pawl {

// Delay before a failed receipt is retried. The effect stays open until one succeeds.
static constexpr Time kRetry = kSecond;

void Clock::start() {
  thread_ = std::thread([this] { loop(); });
}

void Clock::stop() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Clock::opened(const EffectPtr& effect) {
  std::lock_guard lock(mutex_);
  bool first = due_.empty() || effect->due < due_.begin()->first;
  due_.emplace(effect->due, effect->id);
  if (first) wake_.notify_one();
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

void Clock::loop() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (due_.empty() || in_flight_ >= kInFlight) {
      wake_.wait(lock);
      continue;
    }
    Time wait = due_.begin()->first - kernel_.now();
    if (wait > 0) {
      // Sleeps a minute at most: the system clock may be set in the meantime.
      wake_.wait_for(lock, std::chrono::nanoseconds(std::min(wait, 60 * kSecond)));
      continue;
    }
    std::vector<Entry> ripe;
    Time now = kernel_.now();
    while (!due_.empty() && due_.begin()->first <= now && in_flight_ < kInFlight) {
      ripe.push_back(std::move(due_.extract(due_.begin()).value()));
      ++in_flight_;
    }
    lock.unlock();
    for (const Entry& entry : ripe)
      fire(entry);
    lock.lock();
  }
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
        !answer.error().is(kJournalFailed))
      due_.emplace(kernel_.now() + kRetry, entry.second);
    wake_.notify_one();
  });
}

}  // namespace pawl

// Runs one input under watch: whether the kernel makes progress, and which effect a turn settles.

#include <time.h>

#include "runtime/shard.h"

namespace pawl {

// The coarse clock costs a few nanoseconds, which every turn pays.
static int64_t monotonic_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

void Shard::run(Item& item) {
  turn_began_ms_.store(monotonic_ms(), std::memory_order_relaxed);
  if (item.special) return item.special(kernel_);
  const bool settles = !item.input.settles.empty();
  Reply reply = [this, inner = std::move(item.reply)](Result<Answer> answer) mutable {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    if (inner) inner(std::move(answer));
  };
  if (settles && quarantine_->holds(item.input.settles))
    return reply(fail(Code::unavailable, kQuarantined,
                      "'" + item.input.settles +
                          "' is in quarantine, because the server crashed twice while it was "
                          "settled: see `pawl quarantine list`"));
  if (settles) quarantine_->enter(item.input.settles);
  kernel_.run(std::move(item.input), std::move(reply));
  if (settles) quarantine_->leave();
}

Result<void> Shard::progressing(Time limit) const {
  const int64_t began = turn_began_ms_.load(std::memory_order_relaxed);
  const int64_t ran_ms = began == 0 ? 0 : monotonic_ms() - began;
  if (ran_ms <= limit / kMillisecond) return {};
  return fail(Code::unavailable, "NO_PROGRESS",
              "one turn has been running for " + std::to_string(ran_ms / 1000) + " seconds");
}

Result<void> Shard::release(std::string_view effect_id) {
  TRY_OK(quarantine_->release(effect_id));
  TRY(Cell cell, read(effect_key(effect_id)));
  if (!cell.exists()) return {};  // it was withdrawn meanwhile
  TRY(EffectPtr effect, cell.as<Effect>(decode_effect));
  if (effect->to == To::cell) {
    deliver(effect);
    return {};
  }
  Outbox* outbox = outboxes_[static_cast<size_t>(effect->to)];
  if (!outbox) return {};
  // An outbox is called by one thread at a time: the one that commits.
  std::unique_lock lock(group_mutex_);
  while (committing_) {
    // Not a wait for group_ready_: that could take the wake-up of the committer thread.
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  committing_ = true;
  lock.unlock();
  outbox->opened(effect);
  outbox->flushed();
  lock.lock();
  committing_ = false;
  lock.unlock();
  group_ready_.notify_all();
  return {};
}

}  // namespace pawl

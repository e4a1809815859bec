// Drives the kernel: takes slices of the queue, runs their inputs and hands the groups over. Each
// input runs under watch: whether the kernel makes progress, and which effect a turn settles.

#include "base/limits.h"
#include "runtime/monotonic.h"
#include "runtime/shard.h"

namespace pawl {

// A slice ends after this time when further inputs wait; the second while lanes are paced.
static constexpr std::chrono::microseconds kSliceTime{1000};
static constexpr std::chrono::microseconds kPacedSliceTime{250};

// What an input costs on its way through the pipeline: its turn, its commit and its reply. While
// lanes are paced, a tenant may have as many inputs under way as take as long as one append.
static constexpr double kInputSeconds = 30e-6;

// A commit of this many bytes takes longer than one of small frames: writing, hashing and answering
// them. The lane whose frames are more than half of it rests.
static constexpr size_t kLargeCommit = 256 * 1024;

bool Shard::begin_drive() {
  std::lock_guard lock(queue_mutex_);
  if (driving_) return false;
  const int64_t now_ms = monotonic_ms();
  if (!queue_.serves(now_ms)) {
    leave_paced(now_ms);
    return false;
  }
  return driving_ = true;
}

// Inputs that are left wait until a commit or the end of a rest lets their lanes go on.
void Shard::leave_paced(int64_t now_ms) {
  paced_ = !queue_.empty();
  if (paced_ && queue_.rests_until(now_ms)) take_over_.notify_one();
}

// Processor time of this thread. Time in which another thread had the processor does not count.
static int64_t thread_time_us() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000 + t.tv_nsec / 1000;
}

size_t Shard::run_slice(InputQueue::Slice& slice, Wake wake) {
  const size_t first = slice.next;
  slice.transport_us = 0;
  size_t handed_over = first;
  const auto limit = slice.paced ? kPacedSliceTime : kSliceTime;
  auto begin = std::chrono::steady_clock::now();
  const int64_t worked_us = slice.paced ? thread_time_us() : 0;
  while (slice.next < slice.end) {
    Item& item = slice.items[slice.next++];
    slice.transport_us += item.transport_us;
    run(item);
    if (kernel_.group_bytes() >= limits::kGroupBytes ||
        kernel_.group_turns() >= limits::kGroupTurns) {
      hand_over(kernel_.take(), {slice.lane, slice.next - handed_over}, wake);
      handed_over = slice.next;
    }
    if (queue_.others_wait() && std::chrono::steady_clock::now() - begin > limit) break;
  }
  turn_began_ms_.store(0, std::memory_order_relaxed);
  const size_t ran = slice.next - first;
  const auto took = std::chrono::steady_clock::now() - begin;
  slice.took_us = slice.paced ? thread_time_us() - worked_us : 0;
  if (options_.drove) options_.drove(std::chrono::duration<double>(took).count(), ran);
  turns_.fetch_add(ran, std::memory_order_relaxed);
  open_turns_.store(kernel_.open_turns(), std::memory_order_relaxed);
  refused_open_turns_.store(kernel_.refused_open_turns(), std::memory_order_relaxed);
  const Share share{slice.lane, slice.next - handed_over};
  if (kernel_.idle())
    finish({&share, 1});
  else
    hand_over(kernel_.take(), share, wake);
  return ran;
}

bool Shard::next_slice(InputQueue::Slice& slice, size_t done, size_t budget) {
  std::lock_guard lock(queue_mutex_);
  const int64_t now_ms = monotonic_ms();
  if (slice.lane) {
    queue_.took(*slice.lane, slice.took_us, now_ms);
    if (slice.paced) queue_.carried(*slice.lane, slice.transport_us, now_ms);
  }
  queue_.put_back(slice);
  if (!queue_.serves(now_ms)) {
    driving_ = false;
    leave_paced(now_ms);
    return false;
  }
  if (done >= budget) {
    handed_over_ = true;
    take_over_.notify_one();
    return false;
  }
  queue_.take(slice, now_ms);
  return true;
}

void Shard::drive(size_t budget, Wake wake) {
  InputQueue::Slice slice;
  size_t done = 0;
  while (next_slice(slice, done, budget)) {
    kernel_.tick(options_.clock());
    done += run_slice(slice, wake);
  }
}

void Shard::drive_rest() {
  while (true) {
    {
      std::unique_lock lock(queue_mutex_);
      while (!handed_over_ && !ending_) {
        const int64_t now_ms = monotonic_ms();
        const int64_t rested_ms = paced_ ? queue_.rests_until(now_ms) : 0;
        if (rested_ms)
          take_over_.wait_for(lock, std::chrono::milliseconds(rested_ms - now_ms));
        else
          take_over_.wait(lock);
        if (paced_ && !driving_ && queue_.serves(monotonic_ms())) driving_ = handed_over_ = true;
      }
      if (!handed_over_) return;
      handed_over_ = false;
    }
    drive(~size_t{0}, Wake::committer);
  }
}

void Shard::rest_after_commit(std::chrono::nanoseconds took) {
  size_t bytes = 0;
  for (const Share& share : taken_shares_)
    bytes += share.bytes;
  if (bytes < kLargeCommit) return;
  const int64_t took_us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  std::lock_guard lock(queue_mutex_);
  for (const Share& share : taken_shares_)
    if (share.bytes > bytes / 2) queue_.took(*share.lane, took_us, monotonic_ms());
}

void Shard::finish(std::span<const Share> shares) {
  {
    std::lock_guard lock(queue_mutex_);
    for (const Share& share : shares)
      queue_.finished(*share.lane, share.inputs);
    queue_.set_window(
        static_cast<size_t>(append_seconds_.load(std::memory_order_relaxed) / kInputSeconds));
    if (!paced_ || driving_ || !queue_.serves(monotonic_ms())) return;
    driving_ = true;
  }
  drive(kDriveBudget, Wake::committer);
}

void Shard::run(Item& item) {
  turn_began_ms_.store(monotonic_ms(), std::memory_order_relaxed);
  if (item.special) return item.special(kernel_);
  const bool settles = !item.input.settles.empty();
  // An answer is counted when its group is released, so every input needs one.
  if (!item.reply) item.reply = [](Result<Answer>) {};
  if (settles && quarantine_->holds(item.input.settles)) {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    return item.reply(fail(Code::unavailable, kQuarantined,
                           "'" + item.input.settles +
                               "' is in quarantine, because the server crashed twice while it was "
                               "settled: see `pawl quarantine list`"));
  }
  if (settles) quarantine_->enter(item.input.settles);
  kernel_.run(std::move(item.input), std::move(item.reply));
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

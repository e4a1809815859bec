// Drives the kernel: takes slices of the queue, runs their inputs and hands the groups over. Each
// input runs under watch: whether the kernel makes progress, and which effect a turn settles.

#include "base/limits.h"
#include "kernel/delivery.h"
#include "kernel/once.h"
#include "runtime/shard.h"

namespace pawl {

// A slice ends after this time when further inputs wait; the second while lanes are paced.
static constexpr Time kSliceTime = 1000 * kMicrosecond;
static constexpr Time kPacedSliceTime = 250 * kMicrosecond;

// What an input costs on its way through the pipeline: its turn, its commit and its reply. While
// lanes are paced, a tenant may have as many inputs under way as take as long as one append.
static constexpr double kInputSeconds = 30e-6;

// A commit of this many bytes takes longer than one of small frames: writing, hashing and answering
// them. The lane whose frames are more than half of it rests.
static constexpr size_t kLargeCommit = 256 * 1024;

bool Shard::begin_drive() {
  std::lock_guard lock(queue_mutex_);
  if (driving_) return false;
  const int64_t now_ms = scheduler().coarse_ms();
  if (!queue_.serves(now_ms)) {
    leave_paced(now_ms);
    return false;
  }
  return driving_ = true;
}

// Inputs that are left wait until a commit or the end of a rest lets their lanes go on.
void Shard::leave_paced(int64_t now_ms) {
  paced_ = !queue_.empty();
  if (paced_ && queue_.rests_until(now_ms)) driver_loop_->wake();
}

size_t Shard::run_slice(InputQueue::Slice& slice, Wake wake) {
  const size_t first = slice.next;
  slice.transport_us = 0;
  size_t handed_over = first;
  const Time limit = slice.paced ? kPacedSliceTime : kSliceTime;
  const Time begin = scheduler().steady_now();
  // Time in which another thread had the processor does not count.
  const Time worked = slice.paced ? scheduler().processor_time() : 0;
  while (slice.next < slice.end) {
    Item& item = slice.items[slice.next++];
    slice.transport_us += item.transport_us;
    run(item);
    if (kernel_.group_bytes() >= limits::kGroupBytes ||
        kernel_.group_turns() >= limits::kGroupTurns) {
      hand_over(kernel_.take(), {slice.lane, slice.next - handed_over}, wake);
      handed_over = slice.next;
    }
    if (queue_.others_wait() && scheduler().steady_now() - begin > limit) break;
  }
  turn_began_ms_.store(0, std::memory_order_relaxed);
  const size_t ran = slice.next - first;
  const Time took = scheduler().steady_now() - begin;
  slice.took_us = slice.paced ? (scheduler().processor_time() - worked) / kMicrosecond : 0;
  if (options_.drove) options_.drove(static_cast<double>(took) * 1e-9, ran);
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
  const int64_t now_ms = scheduler().coarse_ms();
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
    driver_loop_->wake();
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

Time Shard::drive_step() {
  {
    std::lock_guard lock(queue_mutex_);
    const int64_t now_ms = scheduler().coarse_ms();
    if (!handed_over_ && paced_ && !driving_ && queue_.serves(now_ms))
      driving_ = handed_over_ = true;
    if (!handed_over_) {
      const int64_t rested_ms = paced_ ? queue_.rests_until(now_ms) : 0;
      if (!rested_ms) return BackgroundLoop::kNever;
      return scheduler().steady_now() + (rested_ms - now_ms) * kMillisecond;
    }
    handed_over_ = false;
    driver_drives_ = true;
  }
  drive(~size_t{0}, Wake::committer);
  {
    std::lock_guard lock(queue_mutex_);
    driver_drives_ = false;
  }
  return scheduler().steady_now();  // looks again at once: a rest may have begun
}

void Shard::rest_after_commit(Time took) {
  size_t bytes = 0;
  for (const Share& share : taken_shares_)
    bytes += share.bytes;
  if (bytes < kLargeCommit) return;
  const int64_t took_us = took / kMicrosecond;
  std::lock_guard lock(queue_mutex_);
  for (const Share& share : taken_shares_)
    if (share.bytes > bytes / 2) queue_.took(*share.lane, took_us, scheduler().coarse_ms());
}

void Shard::finish(std::span<const Share> shares) {
  {
    std::lock_guard lock(queue_mutex_);
    for (const Share& share : shares)
      queue_.finished(*share.lane, share.inputs);
    queue_.set_window(
        static_cast<size_t>(append_seconds_.load(std::memory_order_relaxed) / kInputSeconds));
    if (!paced_ || driving_ || !queue_.serves(scheduler().coarse_ms())) return;
    driving_ = true;
  }
  drive(kDriveBudget, Wake::committer);
}

static std::string quarantine_name(const Delivery& delivery) {
  return "shard " + std::to_string(delivery.source) + ": " + delivery.effect;
}

void Shard::run(Item& item) {
  turn_began_ms_.store(scheduler().coarse_ms(), std::memory_order_relaxed);
  if (item.special) return item.special(kernel_);
  // Receipts and deliveries of other shards are repeated after a crash.
  const std::string repeated = item.input.delivery && item.input.delivery->number
                                   ? quarantine_name(*item.input.delivery)
                                   : item.input.settles;
  // An answer is counted when its group is released, so every input needs one.
  if (!item.reply) item.reply = [](Result<Answer>) {};
  if (!repeated.empty() && quarantine_->holds(repeated)) {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    return item.reply(fail(Code::unavailable, kQuarantined,
                           "'" + repeated +
                               "' is in quarantine, because the server crashed twice while it was "
                               "settled: see `pawl quarantine list`"));
  }
  if (!repeated.empty()) quarantine_->enter(repeated);
  kernel_.run(std::move(item.input), std::move(item.reply));
  if (!repeated.empty()) quarantine_->leave();
}

Result<void> Shard::progressing(Time limit) const {
  const int64_t began = turn_began_ms_.load(std::memory_order_relaxed);
  const int64_t ran_ms = began == 0 ? 0 : scheduler().coarse_ms() - began;
  if (ran_ms <= limit / kMillisecond) return {};
  return fail(Code::unavailable, "NO_PROGRESS",
              "one turn has been running for " + std::to_string(ran_ms / 1000) + " seconds");
}

// Before the loops: nothing else runs yet.
Result<void> Shard::write_claim() {
  Input input;
  input.program = kOwnProgram;
  input.verb = kClaimVerb;
  input.body = encode(ShardClaim{options_.claim->epoch, options_.claim->node});
  input.caller.user = "~kernel";
  input.stamp.dice = options_.dice();
  kernel_.tick(options_.clock());
  kernel_.run(std::move(input), {});
  std::vector<Group> groups;
  groups.push_back(kernel_.take());
  CHECK(groups[0].frames.size() == 1);
  TRY_OK(committer_.append(groups));
  committer_.publish(groups);
  durable_.store(committer_.published(), std::memory_order_release);
  return {};
}

void Shard::fence() {
  fenced_.store(true, std::memory_order_release);
  journal_->give_up();
  fail_all({}, fenced(durable(), durable()));
}

Result<void> Shard::trim(Seq keep_from) { return journal_->trim(keep_from); }

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
  scheduler().wait_until(
      [this] {
        std::lock_guard lock(group_mutex_);
        return !std::exchange(committing_, true);
      },
      BackgroundLoop::kNever);
  outbox->opened(effect);
  outbox->flushed();
  {
    std::lock_guard lock(group_mutex_);
    committing_ = false;
  }
  committer_loop_->wake();
  return {};
}

}  // namespace pawl

#include "runtime/shard.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/limits.h"
#include "kernel/once.h"

namespace pawl {

// How far the rows may lag behind the journal. Lag saves work: of several changes to one row only
// the last is written, and an effect that opens and closes within the lag is never written.
static constexpr size_t kTailBytes = 16 << 20;
static constexpr Time kTailAge = 100 * kMillisecond;

// Delay before a failed delivery to a cell is retried.
static constexpr Time kRedeliver = 500 * kMillisecond;

// If an append takes less than this many seconds, the submitting thread commits by itself: waking
// the committer thread would cost more. The second value applies when no other input is in flight.
static constexpr double kQuickAppend = 250e-6;
static constexpr double kAloneAppend = 1.5e-3;

std::array<uint64_t, 2> system_dice() {
  // One system call fetches dice for many inputs.
  thread_local std::array<uint64_t, 512> pool;
  thread_local size_t left = 0;
  if (left < 2) {
    size_t got = 0;
    while (got < sizeof pool) {
      ssize_t n = getrandom(reinterpret_cast<char*>(pool.data()) + got, sizeof pool - got, 0);
      if (n > 0) got += static_cast<size_t>(n);
    }
    left = pool.size();
  }
  left -= 2;
  return {pool[left], pool[left + 1]};
}

static size_t default_cache_bytes() {
  size_t memory =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::clamp<size_t>(memory / 8, 32u << 20, 512u << 20);
}

// A key begins with its program's name.
static const Program* owner(const std::vector<const Program*>& programs, BytesView key) {
  const BytesView name = key.substr(0, key.find('\0'));
  for (const Program* program : programs)
    if (program->name() == name) return program;
  return nullptr;
}

// Three eighths of the cache memory go to the first tier. The packed tier gets the rest: it holds
// three times as many cells per byte, and reading a cell from the rows costs five times as much as
// unpacking it (decision 0010).
static size_t first_tier_bytes(size_t cache_bytes) { return cache_bytes / 8 * 3; }

static FamilyLimit families_of(std::vector<const Program*> programs, size_t max) {
  return {max, [programs = std::move(programs)](BytesView key) {
            const Program* program = owner(programs, key);
            return program ? program->family(key) : BytesView();
          }};
}

static Packing packing_of(std::vector<const Program*> programs, size_t cache_bytes) {
  return {cache_bytes - first_tier_bytes(cache_bytes),
          [programs = std::move(programs)](BytesView key) {
            const Program* program = owner(programs, key);
            return !program || program->worth_packing(key);
          }};
}

Result<std::unique_ptr<Shard>> Shard::open(std::unique_ptr<Journal> journal,
                                           std::unique_ptr<Rows> rows,
                                           std::vector<const Program*> programs,
                                           ShardOptions options) {
  if (!options.dice) options.dice = system_dice;
  if (options.cache_bytes == 0) options.cache_bytes = default_cache_bytes();
  std::unique_ptr<Scheduler> own;
  if (!options.scheduler) {
    own = std::make_unique<BackgroundThreads>();
    options.scheduler = own.get();
  }
  Scheduler& scheduler = *options.scheduler;
  Beside beside = [&scheduler](Task work) { return scheduler.beside(std::move(work)); };
  TRY(Replayed replayed, replay(*journal, *rows, programs, options.progress, beside));
  if (!options.clock) {
    // Shared by the two functions of the options.
    auto clock = std::make_shared<WallClock>(
        WallClock::Sources{[&scheduler] { return scheduler.wall_now(); },
                           [&scheduler] { return scheduler.steady_now(); }});
    clock->not_before(replayed.last_time);
    options.clock = [clock] { return clock->now(); };
    options.clock_behind = [clock] { return clock->behind(); };
  }
  TRY(auto quarantine, Quarantine::open(options.quarantine_folder, options.clock()));
  return std::unique_ptr<Shard>(new Shard(std::move(journal), std::move(rows), std::move(programs),
                                          std::move(options), replayed, std::move(quarantine),
                                          std::move(own)));
}

Shard::Shard(std::unique_ptr<Journal> journal, std::unique_ptr<Rows> rows,
             std::vector<const Program*> programs, ShardOptions options, Replayed replayed,
             std::unique_ptr<Quarantine> quarantine, std::unique_ptr<Scheduler> own_scheduler)
    : own_scheduler_(std::move(own_scheduler)),
      journal_(std::move(journal)),
      rows_(std::move(rows)),
      options_(std::move(options)),
      replayed_(replayed),
      programs_(std::move(programs)),
      cache_(*rows_, first_tier_bytes(options_.cache_bytes),
             families_of(programs_, options_.family_cells),
             packing_of(programs_, options_.cache_bytes), options_.dice()[0]),
      kernel_(
          cache_, [this] { return snapshot(); }, programs_, replayed.last),
      committer_(*journal_, *rows_, cache_, replayed.link),
      quarantine_(std::move(quarantine)),
      queue_(options_.tenant_queued_inputs, scheduler().processors()),
      durable_(replayed.last) {
  kernel_.limit_open_turns(options_.tenant_open_turns);
  kernel_.tick(replayed.last_time);  // time never goes back, not even over a restart
}

Shard::~Shard() { stop(0); }

void Shard::connect(To to, Outbox& outbox) { outboxes_[static_cast<size_t>(to)] = &outbox; }

Result<void> Shard::start() {
  if (options_.claim) TRY_OK(write_claim());
  // The threads that keep the processors busy wait for the committer's flush.
  committer_loop_ = scheduler().prompt_loop("committer", [this] { return commit_step(); });
  driver_loop_ = scheduler().loop("driver", [this] { return drive_step(); });
  applier_loop_ = scheduler().loop("applier", [this] { return apply_step(); });
  accepting_ = true;
  std::vector<EffectPtr> cells;
  ReadSnapshot open = snapshot();
  Result<void> decoded;
  TRY_OK(open.scan(kEffectPrefix, [&](BytesView, const Cell& cell) {
    auto effect = decode_effect(cell.value());
    if (!effect) {
      decoded = fail(std::move(effect.error()));
      return false;
    }
    auto shared = std::make_shared<const Effect>(std::move(*effect));
    // The courier must know every open effect; it learns of the quarantine from the receipt.
    if (shared->to != To::shard && quarantine_->holds(shared->id)) return true;
    if (shared->to == To::cell)
      cells.push_back(std::move(shared));
    else if (Outbox* outbox = outboxes_[static_cast<size_t>(shared->to)])
      outbox->opened(shared);
    return true;
  }));
  TRY_OK(decoded);
  for (Outbox* outbox : outboxes_) {
    if (!outbox) continue;
    outbox->restored();
    outbox->flushed();
  }
  for (const EffectPtr& effect : cells)
    deliver(effect);
  return {};
}

void Shard::stop(Time grace) {
  if (!committer_loop_ || std::exchange(stopped_, true)) return;
  bool was = accepting_.exchange(false);
  auto drained = [&] { return in_flight_.load() == 0; };
  if (was) {
    scheduler().wait_until([&] { return drained() || open_turns_ == 0; },
                           scheduler().steady_now() + grace);
    Error why{
        Code::unavailable, std::string(kStopping.name), "the server is stopping: retry", {}, true};
    {
      std::lock_guard lock(queue_mutex_);
      queue_.stop_pacing();
    }
    enqueue({{}, {}, [why](Kernel& kernel) { kernel.abandon_all(why); }});
    scheduler().wait_until(drained, scheduler().steady_now() + 30 * kSecond);
  }
  end_loops();
  // A failed flush only makes the next replay longer. It is not tried when the disk is full.
  if (healthy()) (void)rows_->flush().has_value();
}

// Waits until the committer and the driver have nothing left to do. They are destroyed with the
// shard: until then late threads may wake them.
void Shard::end_loops() {
  {
    std::scoped_lock lock(group_mutex_, queue_mutex_);
    ending_ = true;
  }
  driver_loop_->wake();
  committer_loop_->wake();
  scheduler().wait_until(
      [this] {
        std::scoped_lock lock(group_mutex_, queue_mutex_);
        return !committing_ && groups_.empty() && !handed_over_ && !driver_drives_;
      },
      BackgroundLoop::kNever);
  if (committer_.waiting_bytes() > 0)
    if (auto done = committer_.apply(); !done && healthy()) fail_all({}, done.error());
}

bool Shard::accept(Input& input, Reply& reply, bool own) {
  if (!accepting_.load(std::memory_order_relaxed)) {
    auto health = healthy();
    reply(fail(health ? Error{Code::unavailable,
                              std::string(kStopping.name),
                              "the server is stopping: retry",
                              {},
                              true}
                      : health.error()));
    return false;
  }
  if (!own && in_flight_.load(std::memory_order_relaxed) >= limits::kQueuedInputs) {
    reply(fail(Error{
        Code::exhausted, "OVERLOADED", "too many requests wait already: retry later", {}, true}));
    return false;
  }
  if (!own && options_.tenant_queued_inputs && tenant_is_full(input.caller.tenant)) {
    refused_queued_.fetch_add(1, std::memory_order_relaxed);
    reply(fail(Error{Code::exhausted,
                     "TENANT_QUEUED_INPUTS",
                     fmt::format("the tenant has {} requests waiting, its limit "
                                 "(--tenant-max-queued-inputs); retry later",
                                 options_.tenant_queued_inputs),
                     {},
                     true}));
    return false;
  }
  input.stamp.now = 0;
  input.stamp.dice = options_.dice();
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool Shard::tenant_is_full(std::string_view tenant) const {
  // Without the lock: most of the time the whole queue is shorter than the limit of a tenant.
  if (in_flight_.load(std::memory_order_relaxed) < options_.tenant_queued_inputs) return false;
  std::lock_guard lock(queue_mutex_);
  return queue_.full(tenant);
}

void Shard::submit(Input input, Reply reply) {
  if (accept(input, reply)) take_in(std::move(input), std::move(reply));
}

void Shard::take_in(Input input, Reply reply) {
  Item item{std::move(input), std::move(reply), {}, TransportCost::take()};
  if (BatchScope::holds(*this))
    push(std::move(item));
  else
    enqueue(std::move(item));
}

void Shard::post(Input input, Reply reply) {
  if (accept(input, reply)) push({std::move(input), std::move(reply), {}});
}

void Shard::push(Item item) {
  std::lock_guard lock(queue_mutex_);
  queue_.push(std::move(item), scheduler().coarse_ms());
}

void Shard::enqueue(Item item) {
  push(std::move(item));
  work(Commit::elsewhere);
}

void Shard::work(Commit where) {
  if (where == Commit::elsewhere) {
    if (begin_drive()) drive(kDriveBudget, Wake::committer);
    return;
  }
  if (begin_drive()) drive(kDriveBudget, Wake::nobody);
  commit_here();
}

void Shard::run_batch() {
  if (begin_drive()) drive(kDriveBudget, Wake::nobody);
  // When no other input is in flight, this thread also waits for a slower disk.
  bool alone = in_flight_.load(std::memory_order_relaxed) <= 1;
  if (append_seconds_.load(std::memory_order_relaxed) < (alone ? kAloneAppend : kQuickAppend))
    commit_here();
  else
    wake_committer();
}

void Shard::hand_over(Group group, Share share, Wake wake) {
  {
    share.bytes = group.bytes;
    std::lock_guard lock(group_mutex_);
    groups_.push_back(std::move(group));
    shares_.push_back(share);
    if (committing_) return;  // the committing thread checks again when it is done
  }
  if (wake == Wake::committer) committer_loop_->wake();
}

void Shard::wake_committer() {
  {
    std::lock_guard lock(group_mutex_);
    if (groups_.empty() || committing_) return;
  }
  committer_loop_->wake();
}

Time Shard::commit_step() {
  std::unique_lock lock(group_mutex_);
  while (!committing_ && !groups_.empty())
    commit_taken(lock);
  return BackgroundLoop::kNever;
}

// Commits once on a thread that has other things to do. Groups that arrive meanwhile are left to
// the committer thread.
void Shard::commit_here() {
  std::unique_lock lock(group_mutex_);
  if (committing_ || groups_.empty()) return;
  commit_taken(lock);
  if (groups_.empty()) return;
  lock.unlock();
  committer_loop_->wake();
}

void Shard::commit_taken(std::unique_lock<std::mutex>& lock) {
  committing_ = true;
  taken_.swap(groups_);
  taken_shares_.swap(shares_);
  std::optional<Error> failed = failed_;
  lock.unlock();
  const Time begin = scheduler().steady_now();
  if (failed)
    fail_all(taken_, *failed);
  else
    commit(taken_);
  rest_after_commit(scheduler().steady_now() - begin);
  taken_.clear();
  finish(taken_shares_);
  taken_shares_.clear();
  lock.lock();
  committing_ = false;
}

static double seconds(Time t) { return static_cast<double>(t) * 1e-9; }

void Shard::commit(std::vector<Group>& groups) {
  CommitTimes times;
  for (const Group& group : groups) {
    times.frames += group.frames.size();
    times.bytes += group.bytes;
    times.answers += group.answers.size();
  }
  const Time begin = scheduler().steady_now();
  if (auto done = committer_.append(groups); !done) return fail_all(groups, done.error());
  // It is durable; but the new owner answers and sends from now on.
  if (fenced_.load(std::memory_order_acquire))
    return fail_all(groups, fenced(durable(), durable()));
  const Time appended = scheduler().steady_now();
  if (times.frames) {
    committer_.publish(groups);
    durable_.store(committer_.published(), std::memory_order_release);
    if (committer_.waiting_bytes() > kTailBytes) applier_loop_->wake();
    frames_.fetch_add(times.frames, std::memory_order_relaxed);
    groups_done_.fetch_add(1, std::memory_order_relaxed);
    times.append = seconds(appended - begin);
    append_seconds_.store(
        append_seconds_.load(std::memory_order_relaxed) * 0.9 + times.append * 0.1,
        std::memory_order_relaxed);
    times.apply = seconds(scheduler().steady_now() - appended);
  }
  if (options_.committed) options_.committed(times);
  release_group(groups);
}

ReadSnapshot Shard::snapshot() const {
  // Rows that refuse a batch, for example on a full disk, stop the shard. They can still be read.
  if (auto done = committer_.apply(); !done) const_cast<Shard*>(this)->fail_all({}, done.error());
  return ReadSnapshot(rows_->snapshot());
}

// Sleeps while nothing waits: an idle server does nothing, and simulated days pass quickly.
Time Shard::apply_step() {
  if (std::exchange(applier_slept_, false)) return scheduler().steady_now() + kTailAge;
  bool deliveries = false;
  {
    std::unique_lock lock(group_mutex_);
    if (ending_) return BackgroundLoop::kNever;
    deliver_again(lock);
    deliveries = !undelivered_.empty();
  }
  if (auto done = committer_.apply(); !done && healthy()) {
    fail_all({}, done.error());
    return BackgroundLoop::kNever;
  }
  if (deliveries) return scheduler().steady_now() + kTailAge;
  applier_sleeps_.store(true);
  // A commit publishes first and looks at the mark then. One of the two sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (committer_.waiting_bytes() > 0 && applier_sleeps_.exchange(false))
    return scheduler().steady_now() + kTailAge;
  applier_slept_ = true;
  return BackgroundLoop::kNever;
}

void Shard::wake_applier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (applier_sleeps_.load(std::memory_order_relaxed) && applier_sleeps_.exchange(false))
    applier_loop_->wake();
}

void Shard::release_group(std::vector<Group>& groups) {
  BatchScope scope;  // inputs that replies submit run as one group
  {
    std::lock_guard lock(watch_mutex_);
    if (!watchers_.empty())
      for (const Group& group : groups)
        for (const Frame& frame : group.frames)
          for (auto& [id, watcher] : watchers_)
            watcher(frame);
  }
  std::array<bool, 8> told{};
  std::vector<EffectPtr> cells;
  for (Group& group : groups) {
    for (auto& [effect, opened] : group.moved) {
      size_t to = static_cast<size_t>(effect->to);
      if (effect->to == To::cell) {
        if (opened) cells.push_back(std::move(effect));
        continue;
      }
      if (!outboxes_[to]) continue;
      told[to] = true;
      if (opened)
        outboxes_[to]->opened(effect);
      else
        outboxes_[to]->closed(*effect);
    }
  }
  for (Group& group : groups) {
    in_flight_.fetch_sub(group.answers.size(), std::memory_order_relaxed);
    for (auto& [reply, answer] : group.answers)
      reply(std::move(answer));
  }
  for (size_t to = 0; to < told.size(); ++to)
    if (told[to]) outboxes_[to]->flushed();
  for (const EffectPtr& effect : cells)
    deliver(effect);
  wake_applier();
}

// Delivers an effect to a cell. The turn that takes the delivery also closes the effect, so it
// happens exactly once. A failed delivery leaves the effect open and is retried later. Deliveries
// are accepted even when the queue is full.
void Shard::deliver(const EffectPtr& effect) {
  Input input;
  input.caller.tenant = effect->tenant;
  input.caller.user = "~kernel";
  input.settles = effect->id;
  Reply reply = [this, effect](Result<Answer> answer) {
    if (answer || answer.error().is(kEffectNotOpen) || answer.error().is(kQuarantined) ||
        !accepting_)
      return;
    std::lock_guard lock(group_mutex_);
    undelivered_.push_back({scheduler().steady_now() + kRedeliver, effect});
    wake_applier();
  };
  if (accept(input, reply, true)) take_in(std::move(input), std::move(reply));
}

void Shard::deliver_again(std::unique_lock<std::mutex>& lock) {
  while (!undelivered_.empty() && undelivered_.front().first <= scheduler().steady_now()) {
    EffectPtr effect = std::move(undelivered_.front().second);
    undelivered_.pop_front();
    lock.unlock();
    deliver(effect);
    lock.lock();
  }
}

// What callers are told once the journal has failed. A fenced shard goes on elsewhere.
static Error failure_of(const Error& why) {
  if (why.is(kFenced))
    return {Code::unavailable,
            std::string(kShardMoved.name),
            "another node serves this shard now; send the request again",
            {},
            true};
  return {Code::unavailable,
          std::string(kJournalFailed.name),
          "the journal cannot be written, so nothing is taken any more (" + why.message +
              "); mend it and restart",
          {},
          true};
}

void Shard::fail_all(std::span<Group> groups, const Error& why) {
  bool first = false;
  {
    std::lock_guard lock(group_mutex_);
    if (!failed_) {
      first = true;
      failed_ = failure_of(why);
    }
  }
  accepting_ = false;
  if (first && options_.stopped) options_.stopped(*failed_);
  for (const Group& group : groups)
    in_flight_.fetch_sub(group.answers.size(), std::memory_order_relaxed);
  refuse_all(groups, *failed_);
}

Result<void> Shard::healthy() const {
  std::lock_guard lock(group_mutex_);
  if (failed_) return fail(*failed_);
  return {};
}

Result<Cell> Shard::read(BytesView key) const { return cache_.read(key); }

Result<void> Shard::frames(Seq from, const std::function<Result<bool>(const Frame&)>& visit) const {
  Seq limit = durable();
  return journal_->read(from, [&](Seq seq, BytesView entry) -> Result<bool> {
    if (seq > limit) return false;
    TRY(Sealed sealed, unseal(entry));
    TRY(Frame frame, decode_frame(seq, sealed.body));
    return visit(frame);
  });
}

uint64_t Shard::watch(Watcher watcher) {
  std::lock_guard lock(watch_mutex_);
  watchers_.emplace_back(next_watcher_, std::move(watcher));
  return next_watcher_++;
}

void Shard::unwatch(uint64_t id) {
  std::lock_guard lock(watch_mutex_);
  std::erase_if(watchers_, [&](const auto& w) { return w.first == id; });
}

ShardStats Shard::stats() const {
  ShardStats s;
  {
    std::lock_guard lock(queue_mutex_);
    s.queued = queue_.size();
  }
  s.in_flight = in_flight_;
  s.open_turns = open_turns_;
  s.refused_open_turns = refused_open_turns_;
  s.refused_queued = refused_queued_;
  s.turns = turns_;
  s.frames = frames_;
  s.groups = groups_done_;
  s.last = durable();
  s.family_cells = cache_.in_families();
  s.packed_cells = cache_.packed();
  return s;
}

Result<Seq> Shard::checkpoint(const std::string& folder) {
  TRY_OK(committer_.apply());
  const Seq applied = rows_->applied();
  TRY_OK(rows_->checkpoint(folder));
  return applied;
}

void Shard::forget_old_answers() {
  Input input;
  input.program = kOwnProgram;
  input.verb = kForget;
  input.caller.user = "~kernel";
  submit(std::move(input), [](Result<Answer>) {});
}

}  // namespace pawl

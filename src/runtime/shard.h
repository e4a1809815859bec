#pragma once
// A shard is one kernel with its journal, its rows and its loops, which a Scheduler runs. The
// thread that submits an input drives the kernel while there are inputs. If it may wait, it also
// makes them durable; otherwise a committer thread does, and then releases replies and effects. See
// docs/decisions/0001-who-drives.md.

#include <atomic>
#include <deque>
#include <mutex>

#include "kernel/access.h"
#include "kernel/commit.h"
#include "kernel/kernel.h"
#include "kernel/replay.h"
#include "runtime/background.h"
#include "runtime/input_queue.h"
#include "runtime/quarantine.h"
#include "runtime/wall_clock.h"
#include "storage/leases.h"

namespace pawl {

struct ShardOptions {
  // Memory of the cell cache, both tiers. 0: an eighth of the machine's memory, at most 512 MiB.
  size_t cache_bytes = 0;
  // Maximum number of clean cells of one family in the first tier. 0: no limit but cache_bytes.
  size_t family_cells = 4096;
  // Limits of one tenant: inputs that wait for the kernel, and turns that wait for a receipt.
  // Further inputs are refused with `exhausted`. 0: no limit but that of all tenants together.
  size_t tenant_queued_inputs = 0;
  size_t tenant_open_turns = 0;
  Scheduler* scheduler = nullptr;        // must outlive the shard; null: threads of its own
  std::function<Time()> clock{};         // default: a WallClock over the scheduler's clocks
  std::function<Time()> clock_behind{};  // set together with the default clock
  std::function<std::array<uint64_t, 2>()> dice{};      // default: the system's random source
  Progress progress{};                                  // progress of the replay at start
  std::function<void(const CommitTimes&)> committed{};  // after each flush, for metrics
  std::function<void(double seconds, size_t turns)>
      drove{};                                  // after each batch of turns, for metrics
  std::function<void(const Error&)> stopped{};  // called once if the journal fails
  std::string quarantine_folder{};              // empty: nothing is quarantined
  // The claim under which the journal was opened. start() then writes it as its first frame, before
  // anything is answered or sent: this fences an owner before it, whatever the store is.
  std::optional<Claim> claim{};
};

struct ShardStats {
  size_t queued = 0;     // inputs that have not begun a turn
  size_t in_flight = 0;  // inputs submitted and not answered
  size_t open_turns = 0;
  uint64_t refused_open_turns = 0;  // inputs whose tenant had too many turns open
  uint64_t refused_queued = 0;      // inputs whose tenant had too many inputs waiting
  uint64_t turns = 0;               // inputs run since the start
  uint64_t frames = 0;              // frames written since the start
  uint64_t groups = 0;              // appends since the start
  Seq last = 0;
  size_t family_cells = 0;  // clean family cells in the first tier
  size_t packed_cells = 0;
};

class Shard final : public KernelAccess {
 public:
  // Replays the frames that the rows lack. Fails when the journal is corrupt: a damaged entry is
  // never skipped.
  static Result<std::unique_ptr<Shard>> open(std::unique_ptr<Journal> journal,
                                             std::unique_ptr<Rows> rows,
                                             std::vector<const Program*> programs,
                                             ShardOptions options = {});
  ~Shard() override;

  // Sends effects with this target to the outbox. Call before start().
  void connect(To to, Outbox& outbox);
  // Starts the threads and offers every effect that is still open.
  Result<void> start();
  // Refuses new inputs, finishes the accepted ones (turns still open after `grace` end with an
  // error) and flushes the rows.
  void stop(Time grace = 5 * kSecond);

  void submit(Input input, Reply reply) override;
  void run_batch() override;
  // For a thread that will only wait for its answer: post() queues the input; work() runs the
  // queue, commits it if no other thread is committing, and sends the replies. Call work() after
  // each post().
  void post(Input input, Reply reply);
  enum class Commit { here, elsewhere };
  void work(Commit where);

  Result<Cell> read(BytesView key) const override;
  ReadSnapshot snapshot() const override;
  Seq durable() const override { return durable_.load(std::memory_order_acquire); }
  Result<void> frames(Seq from,
                      const std::function<Result<bool>(const Frame&)>& visit) const override;
  uint64_t watch(Watcher watcher) override;
  void unwatch(uint64_t id) override;
  Time now() const override { return options_.clock(); }
  // How far the system clock is behind now(): it was set back.
  Time clock_behind() const { return options_.clock_behind ? options_.clock_behind() : 0; }

  // Fails once the journal could not be written: from then on nothing is acknowledged.
  Result<void> healthy() const;
  // Fails with ROWS_CORRUPT once the rows were found damaged. Reads by key that are in the cache
  // and all writes go on; the next start rebuilds the rows.
  Result<void> rows_intact() const { return rows_->intact(); }
  // Fails while one turn has been running for longer than `limit`: the kernel makes no progress.
  Result<void> progressing(Time limit) const;
  const Quarantine& quarantine() const { return *quarantine_; }
  // Takes an effect out of quarantine and delivers it again. `not_found` when it is not there.
  Result<void> release(std::string_view effect_id);
  ShardStats stats() const;
  const Replayed& replayed() const { return replayed_; }
  const Journal& journal() const { return *journal_; }
  Scheduler& scheduler() const { return *options_.scheduler; }
  // Writes a copy of the rows from which a later start can begin. Inputs keep running. The copy
  // holds the frames up to the returned one at least.
  Result<Seq> checkpoint(const std::string& folder);
  // Removes frames before `keep_from` from the journal. Only for frames that a checkpoint holds
  // which is kept elsewhere.
  Result<void> trim(Seq keep_from);
  // Another owner may have the shard: nothing is acknowledged or sent from now on, and callers are
  // told to look for the new owner. Returns soon; stop() follows.
  void fence();
  // Erases recorded answers of Idempotency-Keys that are older than a day.
  void forget_old_answers();

 private:
  using Item = QueuedInput;
  // Inputs that a submitting thread runs before the driver thread takes over, so that an I/O thread
  // returns to its sockets.
  static constexpr size_t kDriveBudget = 256;

  Shard(std::unique_ptr<Journal> journal, std::unique_ptr<Rows> rows,
        std::vector<const Program*> programs, ShardOptions options, Replayed replayed,
        std::unique_ptr<Quarantine> quarantine, std::unique_ptr<Scheduler> own_scheduler);

  enum class Wake { committer, nobody };
  Result<void> write_claim();
  bool accept(Input& input, Reply& reply, bool own = false);  // false: the input was refused
  bool tenant_is_full(std::string_view tenant) const;
  void take_in(Input input, Reply reply);
  void push(Item item);
  // Runs the slice, or part of it when it takes long and other tenants wait. Returns how many ran.
  size_t run_slice(InputQueue::Slice& slice, Wake wake);
  void enqueue(Item item);  // drives the kernel if no other thread does
  bool begin_drive();
  void leave_paced(int64_t now_ms);
  // Makes a lane rest whose large frames made a commit long.
  void rest_after_commit(Time took);
  void drive(size_t budget, Wake wake);
  // Takes the next slice. False: nothing may run now, and this thread no longer drives.
  bool next_slice(InputQueue::Slice& slice, size_t done, size_t budget);
  // Inputs of a lane whose turns ended in a group, or wait, or failed.
  struct Share {
    InputQueue::Lane* lane;
    size_t inputs;
    size_t bytes = 0;  // of the frames; set by hand_over()
  };
  // The groups that ended these inputs are committed: inputs that were paced may run.
  void finish(std::span<const Share> shares);
  void run(Item& item);
  Time drive_step();  // step of the driver, which takes over from busy submitters
  // `share` is of the inputs that ended in the group.
  void hand_over(Group group, Share share, Wake wake);
  void wake_committer();
  Time commit_step();
  void commit_here();
  void commit_taken(std::unique_lock<std::mutex>& lock);
  void commit(std::vector<Group>& groups);
  void release_group(std::vector<Group>& groups);
  void deliver(const EffectPtr& effect);
  void deliver_again(std::unique_lock<std::mutex>& lock);
  Time apply_step();
  void wake_applier();
  void end_loops();
  void fail_all(std::span<Group> groups, const Error& why);

  std::unique_ptr<Scheduler> own_scheduler_;  // null: options_.scheduler belongs to the caller
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Rows> rows_;
  ShardOptions options_;
  Replayed replayed_;
  std::vector<const Program*> programs_;
  mutable CellCache cache_;
  Kernel kernel_;
  mutable Committer committer_;
  std::array<Outbox*, 8> outboxes_{};
  std::unique_ptr<Quarantine> quarantine_;
  std::atomic<int64_t> turn_began_ms_{0};  // monotonic; 0: no turn runs

  mutable std::mutex queue_mutex_;
  InputQueue queue_;
  bool driving_ = false, handed_over_ = false;
  bool driver_drives_ = false;  // the driver, and not a submitter
  bool paced_ = false;          // inputs wait although no thread drives: their lanes are paced
  std::atomic<size_t> in_flight_{0};
  std::atomic<size_t> open_turns_{0};
  std::atomic<uint64_t> refused_open_turns_{0}, refused_queued_{0};
  std::atomic<uint64_t> turns_{0}, frames_{0}, groups_done_{0};
  std::atomic<bool> accepting_{false};
  std::atomic<bool> fenced_{false};  // fence() was called

  mutable std::mutex group_mutex_;
  std::vector<Group> groups_, taken_;
  std::vector<Share> shares_, taken_shares_;  // of the groups
  bool committing_ = false;                   // a thread is using `taken_`
  bool ending_ = false;
  bool stopped_ = false;  // stop() was called
  std::optional<Error> failed_;
  // When to deliver again, by the steady clock.
  std::deque<std::pair<Time, EffectPtr>> undelivered_;

  std::atomic<Seq> durable_;
  std::atomic<double> append_seconds_{0};  // moving average
  mutable std::mutex watch_mutex_;
  std::vector<std::pair<uint64_t, Watcher>> watchers_;
  uint64_t next_watcher_ = 1;
  // Null before start(). The last members: they end before the others.
  std::atomic<bool> applier_sleeps_{false};  // until the next commit wakes it
  bool applier_slept_ = false;               // of the applier's loop alone
  std::unique_ptr<BackgroundLoop> committer_loop_, driver_loop_, applier_loop_;
};

// The system's random source, for code that constructs shards.
std::array<uint64_t, 2> system_dice();

}  // namespace pawl

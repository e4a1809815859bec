#pragma once
// Mutations are deliberate bugs, to test the simulator itself: each must be found. None is in the
// code that ships. They stand at its seams (disk, journal, rows, outboxes, programs), where the
// simulator puts a part of its own between two real ones.

#include <array>
#include <memory>
#include <string_view>

#include "kernel/effect.h"
#include "kernel/program.h"
#include "runtime/workers.h"
#include "sim/schedule.h"
#include "storage/journal.h"
#include "storage/memory/memory.h"
#include "wire/message.h"

namespace pawl::sim {

enum class Mutation : uint8_t {
  none,
  lying_flush,
  failed_append_acknowledged,
  early_timer,
  lost_timer,
  lost_job,
  lease_given_twice,
  settled_job_offered,
  effect_lost_at_start,
  forgotten_view_row,
  stale_snapshot,
  forgotten_answer,
  impure_program,
  rows_ahead,
  event_twice,
  lost_receipt,
  lost_piece,
  no_quarantine,
  lost_condition,
  torn_transaction,
  no_limit,
  wrong_caller,
  silent_read,
  leaked_charge,
  count
};

struct MutationRow {
  Mutation mutation;
  std::string_view name;
  std::string_view what;
};
inline constexpr std::array<MutationRow, static_cast<size_t>(Mutation::count) - 1> kMutations{{
    {Mutation::lying_flush, "lying-flush", "answers leave before their frame is flushed"},
    {Mutation::failed_append_acknowledged, "failed-append-acknowledged",
     "an append that failed is taken for a success"},
    {Mutation::early_timer, "early-timer", "timers fire before they are due"},
    {Mutation::lost_timer, "lost-timer", "one timer in three never reaches the clock"},
    {Mutation::lost_job, "lost-job", "one job in ten never reaches the queue"},
    {Mutation::lease_given_twice, "lease-given-twice", "a leased job is offered again"},
    {Mutation::settled_job_offered, "settled-job-offered",
     "the queue is not told that a job is settled"},
    {Mutation::effect_lost_at_start, "effect-lost-at-start",
     "a start does not offer all open effects"},
    {Mutation::forgotten_view_row, "forgotten-view-row", "a row of a view is not written"},
    {Mutation::stale_snapshot, "stale-snapshot", "a list reads rows of a moment ago"},
    {Mutation::forgotten_answer, "forgotten-answer",
     "a restart forgets the answers of Idempotency-Keys"},
    {Mutation::impure_program, "impure-program", "a turn depends on more than its input"},
    {Mutation::rows_ahead, "rows-ahead", "rows that are durable lack a cell that they applied"},
    {Mutation::event_twice, "event-twice", "one event of a world in ten runs twice"},
    {Mutation::lost_receipt, "lost-receipt", "one receipt in ten is taken and not applied"},
    {Mutation::lost_piece, "lost-piece", "one piece of a stream in ten is not sent"},
    {Mutation::no_quarantine, "no-quarantine", "an effect that kills the server is never parked"},
    {Mutation::lost_condition, "lost-condition", "one If-Match in three is not looked at"},
    {Mutation::torn_transaction, "torn-transaction",
     "one callback in three does not join its transaction"},
    {Mutation::no_limit, "no-limit", "the limits of definitions are not kept"},
    {Mutation::wrong_caller, "wrong-caller", "one request in twenty runs as the caller before it"},
    {Mutation::silent_read, "silent-read", "a read that fails looks like the end of the file"},
    {Mutation::leaked_charge, "leaked-charge", "memory that is charged is not given back"},
}};

// Stands between the shard and an outbox.
class MutantOutbox final : public Outbox {
 public:
  // `workers` is null for the clock.
  MutantOutbox(Mutation mutation, Schedule& schedule, Outbox& inner, Workers* workers)
      : mutation_(mutation),
        schedule_(schedule),
        inner_(inner),
        workers_(workers),
        alive_(std::make_shared<bool>(true)) {}
  ~MutantOutbox() override { *alive_ = false; }
  void opened(const EffectPtr& effect) override;
  void closed(const Effect& effect) override;
  void flushed() override { inner_.flushed(); }
  bool starting = false;  // the shard reports the effects that are open from before

 private:
  const Mutation mutation_;
  Schedule& schedule_;
  Outbox& inner_;
  Workers* workers_;
  std::shared_ptr<bool> alive_;  // shared with posted tasks, which may outlive this object
};

// The rows of one process over the rows of the world, which outlive it.
class WorldRows final : public Rows {
 public:
  WorldRows(Mutation mutation, Schedule& schedule, MemoryRows& rows, const bool& dead)
      : mutation_(mutation), schedule_(schedule), rows_(rows), dead_(dead) {}
  Result<void> apply_changes(const RowChanges& changes, Seq applied) override;
  Seq applied() const override { return rows_.applied(); }
  Result<std::optional<Bytes>> get(BytesView key) const override { return rows_.get(key); }
  std::unique_ptr<RowsSnapshot> snapshot() const override;
  // A dead process makes nothing durable.
  Result<void> flush() override { return dead_ ? Result<void>() : rows_.flush(); }
  Result<void> checkpoint(const std::string& folder) override { return rows_.checkpoint(folder); }
  Result<void> reset() override { return rows_.reset(); }

 private:
  const Mutation mutation_;
  Schedule& schedule_;
  MemoryRows& rows_;
  const bool& dead_;
  mutable std::unique_ptr<RowsSnapshot> old_;
};

class MutantJournal final : public Journal {
 public:
  explicit MutantJournal(std::unique_ptr<Journal> inner) : inner_(std::move(inner)) {}
  Result<void> append(std::span<const BytesView> entries, Seq expected_last) override;
  Result<void> read(Seq from, const Visit& visit) const override {
    return inner_->read(from, visit);
  }
  Seq first() const override { return inner_->first(); }
  Seq last() const override { return inner_->last(); }
  Result<void> trim(Seq keep_from) override { return inner_->trim(keep_from); }
  uint64_t bytes() const override { return inner_->bytes(); }

 private:
  std::unique_ptr<Journal> inner_;
};

// A program as the shard sees it. With a mutation it adds a note of its own to some turns, or runs
// some of them wrongly.
class MutantProgram final : public Program {
 public:
  MutantProgram(Mutation mutation, const Program& inner) : mutation_(mutation), inner_(inner) {}
  std::string_view name() const override { return inner_.name(); }
  Result<Bytes> run(Turn& turn, const Input& input) const override;
  void view(const Committed& frame, ViewRows& rows) const override { inner_.view(frame, rows); }
  uint32_t view_version() const override { return inner_.view_version(); }
  bool accepts_stale_read(Turn& turn, BytesView key, const Cell& read,
                          const Cell& current) const override {
    return inner_.accepts_stale_read(turn, key, read, current);
  }
  bool conflicts_after_begin(BytesView key) const override {
    return inner_.conflicts_after_begin(key);
  }
  bool keeps_history(BytesView key) const override { return inner_.keeps_history(key); }
  BytesView family(BytesView key) const override { return inner_.family(key); }
  bool worth_packing(BytesView key) const override { return inner_.worth_packing(key); }
  std::function<void(const Input&)> before_turn{};  // may crash the world

 private:
  const Mutation mutation_;
  const Program& inner_;
  mutable uint64_t runs_ = 0;
};

// A request as it reaches the server. `before` is the Authorization of the last request.
void mutate_request(Mutation mutation, Schedule& schedule, wire::Request& request,
                    std::string& before);

// Erases the recorded answers of Idempotency-Keys from the rows, as no restart may.
void forget_answers(MemoryRows& rows);

}  // namespace pawl::sim

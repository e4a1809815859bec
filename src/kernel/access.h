#pragma once
// KernelAccess is how services reach a kernel: they submit inputs, read durable state and watch
// frames. The runtime's shard and the simulator implement it; a face does not know which.

#include <functional>
#include <memory>

#include "kernel/input.h"
#include "kernel/program.h"

namespace pawl {

// Reasons for refusing an input that callers act on.
inline constexpr Reason kEffectNotOpen{"EFFECT_NOT_OPEN"};
inline constexpr Reason kIdempotencyKeyReused{"IDEMPOTENCY_KEY_REUSED"};
inline constexpr Reason kStopping{"STOPPING"};             // the shard takes no more inputs
inline constexpr Reason kJournalFailed{"JOURNAL_FAILED"};  // the shard has stopped for good

inline constexpr Reason kShardMoved{"SHARD_MOVED"};  // another node owns the shard now

struct Answer {
  Bytes body;
  Seq seq = 0;  // seq of the frame that the turn wrote; 0 when it wrote nothing
};
using Reply = std::move_only_function<void(Result<Answer>)>;

// A consistent snapshot of durable cells and view rows.
class ReadSnapshot {
 public:
  explicit ReadSnapshot(std::unique_ptr<RowsSnapshot> rows) : rows_(std::move(rows)) {}
  Result<Cell> read(BytesView key) const;
  // Visits the cells whose key begins with `prefix`, in key order, starting at the first key that
  // is not less than `from`, until `visit` returns false.
  using VisitCell = std::function<bool(BytesView key, const Cell& cell)>;
  Result<void> scan(BytesView prefix, const VisitCell& visit, BytesView from = {}) const;
  // The same without allocating cells, for searches over very many of them. The bytes are valid
  // only during the call.
  using VisitBytes = std::function<bool(BytesView key, Seq version, BytesView value)>;
  Result<void> scan_bytes(BytesView prefix, const VisitBytes& visit) const;
  // Visits view rows of a program, with the keys that Program::view gave them. With `back` the
  // order is descending and starts at the last key less than `from`.
  using VisitRow = RowsSnapshot::Visit;
  Result<void> rows(BytesView program, BytesView prefix, const VisitRow& visit, BytesView from = {},
                    bool back = false) const;
  Result<std::optional<Bytes>> row(BytesView program, BytesView key) const;
  // Returns the version that was current after frame `seq`. Only for cells whose program keeps
  // history (Program::keeps_history).
  Result<Cell> read_at(BytesView key, Seq seq) const;
  // Visits all kept versions, newest first, until `visit` returns false. A cell with a version and
  // no bytes means that this version erased it.
  Result<void> history(BytesView key, const VisitCell& visit) const;
  // Returns the seq of the last frame stamped at or before `t`.
  Result<Seq> seq_at(Time t) const;
  Seq seq() const { return rows_->applied(); }

 private:
  std::unique_ptr<RowsSnapshot> rows_;
};

struct Frame;
// Called with each durable frame, which is valid only during the call.
using Watcher = std::function<void(const Frame& frame)>;

class KernelAccess {
 public:
  virtual ~KernelAccess() = default;

  // Queues an input. `reply` is called exactly once, on an unspecified thread, after the frame is
  // durable and visible to reads. When the queue is full, `reply` is called at once with
  // `exhausted`. Thread-safe.
  virtual void submit(Input input, Reply reply) = 0;
  // Runs the inputs that a BatchScope held back.
  virtual void run_batch() {}

  // Returns the newest durable version, from the cache when it is there.
  virtual Result<Cell> read(BytesView key) const = 0;
  virtual ReadSnapshot snapshot() const = 0;
  virtual Seq durable() const = 0;  // seq of the last durable frame

  // Visits the journal's frames from seq `from` on, including those from before this start.
  virtual Result<void> frames(Seq from,
                              const std::function<Result<bool>(const Frame&)>& visit) const = 0;
  // Calls the watcher for each frame once it is durable, in order, on the committer's thread, so
  // the watcher must return quickly. The returned id is for unwatch().
  virtual uint64_t watch(Watcher watcher) = 0;
  virtual void unwatch(uint64_t id) = 0;

  // The time that an input would be stamped with now.
  virtual Time now() const = 0;
};

// While a BatchScope is alive, inputs submitted on its thread are only queued; its destructor runs
// them as one group with one flush. Use it where several requests arrive together. Do not wait for
// an answer on this thread while the scope is alive: no input runs before it ends. A KernelAccess
// that runs inputs at once ignores scopes.
class BatchScope {
 public:
  BatchScope();
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  BatchScope& operator=(const BatchScope&) = delete;
  // For implementations of KernelAccess: true when the input must only be queued. run_batch() is
  // then called when the scope ends.
  static bool holds(KernelAccess& kernel);

 private:
  BatchScope* outer_;
  KernelAccess* kernel_ = nullptr;
};

// Processor time that a transport spends on one request outside of the kernel. While a
// TransportCost is alive, the first input submitted on its thread is charged with it, so that the
// pace of a tenant counts the whole price of its requests. For transports whose own work cannot be
// paced.
class TransportCost {
 public:
  explicit TransportCost(int64_t microseconds);
  ~TransportCost();
  TransportCost(const TransportCost&) = delete;
  TransportCost& operator=(const TransportCost&) = delete;
  // For implementations of KernelAccess: the cost of the input that is submitted now.
  static int64_t take();

 private:
  const int64_t outer_;
};

// Turn::read_as for readers outside a turn.
template <class T, class Decode>
Result<std::shared_ptr<const T>> read_as(const KernelAccess& kernel, BytesView key,
                                         Decode&& decode) {
  TRY(Cell cell, kernel.read(key));
  return cell.as<T>(decode);
}

}  // namespace pawl

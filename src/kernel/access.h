#pragma once
// The door is how services reach the kernel: inputs go in, durable state can be read. The server's
// shard and the simulator's world implement it; a face never sees which.

#include <functional>
#include <memory>

#include "kernel/input.h"
#include "kernel/program.h"

namespace pawl {

struct Answer {
  Bytes body;
  Seq seq = 0;  // of the frame that was written; 0 when the turn wrote nothing
};
using Reply = std::move_only_function<void(Result<Answer>)>;

// A consistent look at durable cells and view rows.
class ReadSnapshot {
 public:
  explicit ReadSnapshot(std::unique_ptr<RowsSnapshot> rows) : rows_(std::move(rows)) {}
  Result<Cell> read(BytesView key) const;
  // Cells whose key begins with `prefix`, in key order, from the first key not before `from`.
  using VisitCell = std::function<bool(BytesView key, const Cell& cell)>;
  Result<void> scan(BytesView prefix, const VisitCell& visit, BytesView from = {}) const;
  // The same without making cells: for searches that look at very many once. The bytes are the
  // visitor's during the call only.
  using VisitBytes = std::function<bool(BytesView key, Seq version, BytesView value)>;
  Result<void> scan_bytes(BytesView prefix, const VisitBytes& visit) const;
  // View rows of a program, keys as view() gave them; `back` from the last to the first, in which
  // case `from` is where to begin, itself left out.
  using VisitRow = RowsSnapshot::Visit;
  Result<void> rows(BytesView program, BytesView prefix, const VisitRow& visit, BytesView from = {},
                    bool back = false) const;
  Result<std::optional<Bytes>> row(BytesView program, BytesView key) const;
  // The version of a cell that was newest at `seq`; only for cells whose program keeps history.
  Result<Cell> read_at(BytesView key, Seq seq) const;
  // All kept versions, newest first, until `visit` returns false. A cell with version and no bytes
  // is an erasure.
  Result<void> history(BytesView key, const VisitCell& visit) const;
  // The seq of the last frame whose stamp is not after `t`.
  Result<Seq> seq_at(Time t) const;
  Seq seq() const { return rows_->applied(); }

 private:
  std::unique_ptr<RowsSnapshot> rows_;
};

// A durable frame, as watchers see it. Valid during the call only.
struct Frame;
using Watcher = std::function<void(const Frame& frame)>;

class KernelAccess {
 public:
  virtual ~KernelAccess() = default;

  // Queues an input; `reply` is called once, after the frame is durable and its rows are visible,
  // from an unspecified thread. Safe from any thread. When the queue is full the reply comes at
  // once with `exhausted`.
  virtual void submit(Input input, Reply reply) = 0;
  // Runs what a BatchScope held back.
  virtual void run_batch() {}

  // The newest durable version, from memory when it is hot.
  virtual Result<Cell> read(BytesView key) const = 0;
  virtual ReadSnapshot snapshot() const = 0;
  virtual Seq durable() const = 0;

  // Visits frames of the journal from `from`, old ones included.
  virtual Result<void> frames(Seq from,
                              const std::function<Result<bool>(const Frame&)>& visit) const = 0;
  // Calls the watcher for each frame after it is durable, in order, on the committer's thread: copy
  // what you need and return. The number ends it.
  virtual uint64_t watch(Watcher watcher) = 0;
  virtual void unwatch(uint64_t id) = 0;

  // Time as inputs would be stamped now.
  virtual Time now() const = 0;
};

// While it lives, inputs submitted on its thread only queue; its end runs them as one group. For
// those who find several requests at once. Nothing may wait for an answer on this thread meanwhile.
// A door that runs inputs at once takes no notice.
class BatchScope {
 public:
  BatchScope();
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  BatchScope& operator=(const BatchScope&) = delete;
  // For doors: whether to hold inputs back, which is then promised to be followed by together().
  static bool holds(KernelAccess& kernel);

 private:
  BatchScope* outer_;
  KernelAccess* kernel_ = nullptr;
};

// As Turn::read_as, for readers outside a turn.
template <class T, class Decode>
Result<std::shared_ptr<const T>> read_as(const KernelAccess& kernel, BytesView key,
                                         Decode&& decode) {
  TRY(Cell cell, kernel.read(key));
  return cell.as<T>(decode);
}

}  // namespace pawl

#pragma once
// The memory twins: a Journal and Rows that keep every promise but surviving the process. Tests and
// the simulator run on them, so they can also lose exactly what a crash may lose, and nothing else.

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <vector>

#include "storage/journal.h"
#include "storage/rows.h"

namespace pawl {

// How an append fails. In every case the caller is told JOURNAL_WRITE and the journal takes no
// more appends until reopen(), as a disk does whose flush failed.
enum class AppendFault {
  nothing_written,     // the entries are gone
  everything_written,  // the entries are there, though the caller was told otherwise
};

class MemoryJournal final : public Journal {
 public:
  Result<void> append(std::span<const BytesView> entries, Seq expected_last) override;
  Result<void> read(Seq from, const Visit& visit) const override;
  Seq first() const override;
  Seq last() const override;
  Result<void> trim(Seq keep_from) override;
  Result<Bytes> get(Seq seq) const override;
  uint64_t bytes() const override;

  // For the simulator. What a crash may do:
  void fail_next_append(AppendFault how);
  void drop_after(
      Seq seq);   // loses the entries after `seq`, as a crash loses an unacknowledged tail
  void reopen();  // takes appends again, as a new process would

 private:
  // Shared, so that a reader keeps an entry that is trimmed or dropped while it visits it.
  using Entry = std::shared_ptr<const Bytes>;

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  Seq first_ = 1;
  uint64_t bytes_ = 0;
  std::optional<AppendFault> fault_;
  bool poisoned_ = false;
};

// Every key has its versions, one a batch; a snapshot is a version number. Old versions go when no
// snapshot can see them.
class MemoryRows final : public Rows {
 public:
  MemoryRows();
  ~MemoryRows() override;
  // The rows that checkpoint() wrote into `folder`; empty rows when there is no such folder.
  static Result<std::unique_ptr<MemoryRows>> load(const std::string& folder);

  Result<void> apply_changes(const RowChanges& changes, Seq applied) override;
  Seq applied() const override;
  Result<std::optional<Bytes>> get(BytesView key) const override;
  std::unique_ptr<RowsSnapshot> snapshot() const override;
  Result<void> flush() override;
  Result<void> checkpoint(const std::string& folder) override;
  Result<void> reset() override;

  // For the simulator: the rows fall back to the last flush(), or to nothing. No snapshot may be
  // open, since the process that held it is gone.
  void crash();

 private:
  class Table;
  class Snapshot;
  std::shared_ptr<Table> table_;       // shared with the snapshots, which may outlive the rows
  std::unique_ptr<Snapshot> flushed_;  // what crash() falls back to
};

}  // namespace pawl

#pragma once
// A Journal and Rows in memory. They keep every promise of the interfaces except durability. Tests
// and the simulator use them; functions for the simulator lose what a crash may lose.

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

// The state that a failed append leaves behind. In both cases the caller gets JOURNAL_WRITE and the
// journal refuses appends until reopen(), as FileJournal does after a failed flush.
enum class AppendFault {
  nothing_written,
  everything_written,
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

  // For the simulator: what a crash may do.
  void fail_next_append(AppendFault fault);
  void drop_after(
      Seq seq);   // drops the entries after `seq`, as a crash may if none was acknowledged
  void reopen();  // accepts appends again, as a new process would

 private:
  // Shared, because an entry may be trimmed while a reader visits it.
  using Entry = std::shared_ptr<const Bytes>;

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  Seq first_ = 1;
  uint64_t bytes_ = 0;
  std::optional<AppendFault> fault_;
  bool write_failed_ = false;
};

// MemoryRows keeps the versions of every key, one for each batch that changed it. A snapshot is a
// version number. Versions that no snapshot can see are removed.
class MemoryRows final : public Rows {
 public:
  MemoryRows();
  ~MemoryRows() override;
  // Loads the rows that checkpoint() wrote to `folder`; empty rows when there is no such folder.
  static Result<std::unique_ptr<MemoryRows>> load(const std::string& folder);

  Result<void> apply_changes(const RowChanges& changes, Seq applied) override;
  Seq applied() const override;
  Result<std::optional<Bytes>> get(BytesView key) const override;
  std::unique_ptr<RowsSnapshot> snapshot() const override;
  Result<void> flush() override;
  Result<void> checkpoint(const std::string& folder) override;
  Result<void> reset() override;

  // For the simulator: restores the rows of the last flush(), or empty rows. No snapshot may be
  // open, because a crash ends the process that held it.
  void crash();

 private:
  class Table;
  class Snapshot;
  std::shared_ptr<Table> table_;       // shared with snapshots, which may outlive the rows
  std::unique_ptr<Snapshot> flushed_;  // what crash() restores
};

}  // namespace pawl

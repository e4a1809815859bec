#pragma once
// Opens a journal or rows by the name of their backend. No other file names the backends.

#include <memory>
#include <string>

#include "storage/journal.h"
#include "storage/rows.h"

namespace pawl {

struct JournalOptions {
  std::string backend = "file";  // or "memory"
  std::string folder;
  uint64_t segment_bytes = 64u << 20;
  bool unflushed = false;  // for tests: appends may be lost at a power cut
};

// What the rows of several shards share: one cache of blocks. Memory for rows that are not yet in
// files, and open files, are divided between them.
class RowsMemory {
 public:
  virtual ~RowsMemory() = default;
};
std::shared_ptr<RowsMemory> make_rows_memory(size_t cache_bytes, size_t shards);

struct RowsOptions {
  std::string backend = "rocksdb";  // or "memory"
  std::string folder;
  size_t cache_bytes = 64u << 20;
  std::shared_ptr<RowsMemory> memory{};  // instead of cache_bytes
};

// A line for the operator about something that opening repaired; empty when there was nothing.
using OpenNote = std::string;

Result<std::unique_ptr<Journal>> open_journal(const JournalOptions& options,
                                              OpenNote* note = nullptr);
Result<std::unique_ptr<Rows>> open_rows(const RowsOptions& options);

}  // namespace pawl

#pragma once
// The one place that knows every backend by name.

#include <memory>
#include <string>

#include "storage/journal.h"
#include "storage/rows.h"

namespace pawl {

struct JournalOptions {
  std::string backend = "file";  // or "memory"
  std::string folder;
  uint64_t segment_bytes = 64u << 20;
  bool unflushed = false;  // tests and throw-away journals only: nothing survives a power cut
};

struct RowsOptions {
  std::string backend = "rocksdb";  // or "memory"
  std::string folder;
  size_t cache_bytes = 64u << 20;
};

// What opening found that the operator should read, in one line; empty when all was as expected.
using OpenNote = std::string;

Result<std::unique_ptr<Journal>> open_journal(const JournalOptions& options,
                                              OpenNote* note = nullptr);
Result<std::unique_ptr<Rows>> open_rows(const RowsOptions& options);

}  // namespace pawl

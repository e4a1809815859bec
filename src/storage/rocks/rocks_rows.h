#pragma once
// Rows in RocksDB, without RocksDB's own log: the journal is the log. Each batch writes its applied
// seq under a reserved key, so after a crash the rows are consistent and know their seq.

#include <memory>
#include <string>

#include "storage/rows.h"

namespace pawl {

struct RocksOptions {
  std::string folder;  // created when it does not exist
  size_t cache_bytes = 64u << 20;
  size_t memtable_bytes = 64u << 20;  // of each of up to three memtables
};

// Fails with `corrupt` ROWS_CORRUPT when the folder is damaged. The caller may then remove it, open
// again and rebuild the rows from the journal.
Result<std::unique_ptr<Rows>> open_rocks_rows(const RocksOptions& options);

}  // namespace pawl

#pragma once
// Rows in RocksDB without its log: the journal is the log. The seq that a batch brings the rows to
// is written in the same batch under a reserved key, so what a crash leaves is whole and says where
// it stands.

#include <memory>
#include <string>

#include "storage/rows.h"

namespace pawl {

struct RocksOptions {
  std::string folder;  // made when it does not exist
  size_t cache_bytes = 64u << 20;
  size_t memtable_bytes = 64u << 20;  // of three
};

// Fails `corrupt` ROWS_CORRUPT when the folder cannot be read: the caller may remove it and open
// again, and the rows are rebuilt from the journal.
Result<std::unique_ptr<Rows>> open_rocks_rows(const RocksOptions& options);

}  // namespace pawl

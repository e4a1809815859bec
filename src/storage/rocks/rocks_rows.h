#pragma once
// Rows in RocksDB, without RocksDB's own log: the journal is the log. Each batch writes its applied
// seq under a reserved key, so after a crash the rows are consistent and know their seq.

#include <memory>
#include <string>

#include "storage/open.h"
#include "storage/rows.h"

namespace rocksdb {
class Cache;
}

namespace pawl {

struct RocksOptions {
  std::string folder;  // created when it does not exist
  size_t cache_bytes = 64u << 20;
  size_t memtable_bytes = 64u << 20;  // of each of up to three memtables
  int open_files = 512;
  std::shared_ptr<rocksdb::Cache> cache{};  // shared with other rows; null: of its own
};

std::shared_ptr<RowsMemory> make_rocks_memory(size_t cache_bytes, size_t shards);
// Sets the options of one shard. `memory` is of make_rocks_memory().
void share_rocks_memory(RocksOptions& options, const RowsMemory& memory);

// Fails with `corrupt` ROWS_CORRUPT when the folder is damaged. The caller may then remove it, open
// again and rebuild the rows from the journal.
Result<std::unique_ptr<Rows>> open_rocks_rows(const RocksOptions& options);

}  // namespace pawl

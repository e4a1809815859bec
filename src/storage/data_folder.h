#pragma once
// A data directory holds everything that one server stores:
//
//   DIR/FORMAT        one line: "pawl data 1, 1 shard" or "pawl data 2, N shards"
//   DIR/journal/      the journal
//   DIR/rows/         the rows; may be deleted while the server is stopped
//   DIR/rows.damaged  the rows were found damaged: the next start rebuilds them
//   DIR/checkpoints/  copies of the rows, named by seq
//   DIR/in-doubt, DIR/quarantine  effects that may have crashed the server (runtime/quarantine.h)
//
// With more than one shard, everything but FORMAT is in the folder of its shard, DIR/shards/NNNN.
// The number of shards is chosen when the directory is made and never changes.

#include <vector>

#include "storage/open.h"

namespace pawl {

struct Stores {
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Rows> rows;
  std::vector<std::string> notes;  // lines for the operator about repairs
};

inline constexpr uint32_t kMaxShards = 1024;
inline constexpr Reason kShardNumber{"SHARD_NUMBER"};

// Creates the directory with this many shards when it does not exist, and returns how many it has.
// 0: the number that the directory has, and 1 for a new one. Another number than the directory's is
// refused with kShardNumber.
Result<uint32_t> prepare_data(const std::string& data, uint32_t shards,
                              std::vector<std::string>* notes = nullptr);
// Opens the stores of one shard of a directory that prepare_data() has seen. Damaged rows are
// deleted, with a note: they are rebuilt from the journal. The folders in both options are set
// here.
Result<Stores> open_shard_data(const std::string& folder, JournalOptions journal = {},
                               RowsOptions rows = {});
// Both for a directory of one shard; others are refused.
Result<Stores> open_data(const std::string& data, JournalOptions journal = {},
                         RowsOptions rows = {});
// The number of shards. Fails when the directory is not a data directory of this version.
Result<uint32_t> check_data_folder(const std::string& data);
// Opens only the journal of a shard of a directory that exists.
Result<std::unique_ptr<Journal>> open_data_journal(const std::string& data, uint32_t shard = 0);
// Creates the directory and writes its FORMAT file.
Result<void> write_format(const std::string& data, uint32_t shards = 1);

// The folder of a shard: the directory itself when it has only one.
std::string shard_folder(const std::string& data, uint32_t shards, uint32_t shard);
// Both below the folder of a shard.
std::string journal_folder(const std::string& folder);
std::string rows_folder(const std::string& folder);

}  // namespace pawl

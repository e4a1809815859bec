#pragma once
// Copies data folders, for backup and restore.

#include "kernel/verify.h"
#include "storage/data_folder.h"

namespace pawl::cli {

// Copies a journal into a new folder that `pawl serve` can open. The server rebuilds the rows from
// it.
struct Copied {
  Seq last = 0;
  uint64_t bytes = 0;
};
Result<Copied> copy_journal(const Journal& from, const std::string& data, const Progress& progress);

}  // namespace pawl::cli

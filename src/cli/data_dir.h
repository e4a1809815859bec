#pragma once
// A data directory: what is in it, and how it is opened.
//
//   DIR/FORMAT        one line: "pawl data 1, 1 shard"
//   DIR/journal/      the truth
//   DIR/rows/         derived; may be deleted while the server is stopped
//   DIR/checkpoints/  copies of the rows, by seq

#include <memory>

#include "kernel/verify.h"
#include "storage/open.h"

namespace pawl::cli {

struct Opened {
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Rows> rows;
  std::vector<std::string> notes;  // what the operator should read
};

// Makes the directory when it is not there. Rows that cannot be opened are thrown away and said so:
// the journal gives them back.
Result<Opened> open_data(const std::string& folder);
// The journal alone, of a directory that must exist.
Result<std::unique_ptr<Journal>> open_data_journal(const std::string& folder);
std::string journal_folder(const std::string& data);
std::string rows_folder(const std::string& data);

// Copies a journal and a state of the rows into a new directory that `pawl serve` can open.
struct Copied {
  Seq last = 0;
  uint64_t bytes = 0;
};
Result<Copied> copy_journal(const Journal& from, const std::string& data, const Progress& progress);
Result<void> write_format(const std::string& data);

}  // namespace pawl::cli

#pragma once
// A data directory: what is in it, and how it is opened.
//
//   DIR/FORMAT        one line: "pawl data 1, 1 shard"
//   DIR/journal/      the truth
//   DIR/rows/         derived; may be deleted while nobody has it open
//   DIR/checkpoints/  copies of the rows, by seq

#include <vector>

#include "storage/open.h"

namespace pawl {

struct Stores {
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Rows> rows;
  std::vector<std::string> notes;  // what the operator should read
};

// Makes the directory when it is not there. Rows that cannot be opened are thrown away and said so:
// the journal gives them back. The folders of both options are set here.
Result<Stores> open_data(const std::string& data, JournalOptions journal = {},
                         RowsOptions rows = {});
// The journal alone, of a directory that must exist.
Result<std::unique_ptr<Journal>> open_data_journal(const std::string& data);
// Makes the directory, and says in it what it is.
Result<void> write_format(const std::string& data);

std::string journal_folder(const std::string& data);
std::string rows_folder(const std::string& data);

}  // namespace pawl

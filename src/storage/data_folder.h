#pragma once
// A data directory holds everything that one server stores:
//
//   DIR/FORMAT        one line: "pawl data 1, 1 shard"
//   DIR/journal/      the journal
//   DIR/rows/         the rows; may be deleted while the server is stopped
//   DIR/rows.damaged  the rows were found damaged: the next start rebuilds them
//   DIR/checkpoints/  copies of the rows, named by seq
//   DIR/in-doubt, DIR/quarantine  effects that may have crashed the server (runtime/quarantine.h)

#include <vector>

#include "storage/open.h"

namespace pawl {

struct Stores {
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Rows> rows;
  std::vector<std::string> notes;  // lines for the operator about repairs
};

// Opens the stores and creates the directory when it does not exist. Damaged rows are deleted, with
// a note: they are rebuilt from the journal. The folders in both options are set here.
Result<Stores> open_data(const std::string& data, JournalOptions journal = {},
                         RowsOptions rows = {});
// Fails when the directory is not a data directory of this version.
Result<void> check_data_folder(const std::string& data);
// Opens only the journal of a directory that exists.
Result<std::unique_ptr<Journal>> open_data_journal(const std::string& data);
// Creates the directory and writes its FORMAT file.
Result<void> write_format(const std::string& data);

std::string journal_folder(const std::string& data);
std::string rows_folder(const std::string& data);

}  // namespace pawl

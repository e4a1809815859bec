#include "storage/data_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "storage/file/disk.h"
#include "storage/file/journal_folder.h"

namespace pawl {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFormat = "pawl data 1, 1 shard";
constexpr char kFormatFile[] = "FORMAT";

// True when the directory may become a data directory. It may hold what an interrupted first start
// and a new file system leave there.
bool is_unused(const std::string& data) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(data, ec)) {
    const std::string name = entry.path().filename();
    if (name != std::string(kFormatFile) + ".tmp" && name != "lost+found") return false;
  }
  return true;
}

bool has_format(const std::string& data) {
  std::error_code ec;
  return fs::exists(data + "/" + kFormatFile, ec);
}

Result<void> check_format(const std::string& data) {
  std::ifstream in(data + "/" + kFormatFile);
  std::string line;
  std::getline(in, line);
  if (line == kFormat) return {};
  return fail(Code::invalid, "DATA_FORMAT",
              fmt::format("{}/FORMAT says '{}', but this version of pawl reads '{}': use the "
                          "version that wrote it, or `pawl restore` a backup",
                          data, line, kFormat));
}

// Opening would create a journal that is missing. Rows are created after the journal, so rows
// without a journal mean that the journal was lost.
Result<void> check_journal_is_there(const std::string& data, const JournalOptions& journal,
                                    const RowsOptions& rows) {
  std::error_code ec;
  if (journal.backend != "file" || rows.backend == "memory") return {};
  if (fs::exists(journal_folder(data), ec) || !fs::exists(rows_folder(data), ec)) return {};
  return fail(Code::corrupt, "JOURNAL_LOST",
              fmt::format("{} is gone and the rows are there: everything acknowledged is lost "
                          "from the journal. {}",
                          journal_folder(data), kLossRemedy));
}

// Makes the directory readable by its owner only: it holds everything that callers stored.
void close_to_others(const std::string& data, std::vector<std::string>& notes) {
  std::error_code ec;
  const fs::perms others = fs::perms::group_all | fs::perms::others_all;
  if ((fs::status(data, ec).permissions() & others) == fs::perms::none) return;
  fs::permissions(data, fs::perms::owner_all, ec);
  notes.push_back(
      ec ? fmt::format("other users may read {} and that cannot be changed: {}", data, ec.message())
         : fmt::format("{} is now readable by its owner only", data));
}

Result<std::unique_ptr<Rows>> open_or_drop_rows(const RowsOptions& options,
                                                std::vector<std::string>& notes) {
  std::error_code ec;
  const std::string mark = damage_mark(options.folder);
  if (fs::exists(mark, ec)) {
    notes.push_back(
        "the rows were found damaged when they were last used; they are rebuilt from "
        "the journal");
  } else {
    auto rows = open_rows(options);
    if (rows || rows.error().code != Code::corrupt) return rows;
    notes.push_back(
        fmt::format("the rows could not be opened ({}); they are rebuilt from the journal",
                    rows.error().message));
  }
  fs::remove_all(options.folder, ec);
  // Removed last: a stop in between leaves the mark, and the next start does the same again.
  fs::remove(mark, ec);
  return open_rows(options);
}

}  // namespace

std::string journal_folder(const std::string& data) { return data + "/journal"; }
std::string rows_folder(const std::string& data) { return data + "/rows"; }

Result<void> write_format(const std::string& data) {
  std::error_code ec;
  fs::create_directories(data, ec);
  if (ec)
    return fail(
        Code::unavailable, "DATA_DIR",
        fmt::format("cannot make {}: {}; choose another data directory or change its permissions",
                    data, ec.message()));
  fs::permissions(data, fs::perms::owner_all, ec);
  Disk disk;
  auto written = replace_file(disk, data, kFormatFile, std::string(kFormat) + "\n");
  if (!written)
    return fail(Code::unavailable, "DATA_DIR",
                fmt::format("cannot write {}/FORMAT: {}", data, written.error().message));
  return {};
}

Result<Stores> open_data(const std::string& data, JournalOptions journal, RowsOptions rows) {
  if (!has_format(data)) {
    if (!is_unused(data))
      return fail(Code::invalid, "NOT_A_DATA_DIR",
                  fmt::format("{} is not empty and has no FORMAT file, so it is not a data "
                              "directory of pawl; choose another",
                              data));
    TRY_OK(write_format(data));
  }
  TRY_OK(check_format(data));
  TRY_OK(check_journal_is_there(data, journal, rows));
  Stores out;
  close_to_others(data, out.notes);
  OpenNote note;
  journal.folder = journal_folder(data);
  TRY(out.journal, open_journal(journal, &note));
  if (!note.empty()) out.notes.push_back(note);
  for (const std::string& mark : read_loss_marks(journal.folder))
    out.notes.push_back("the journal is not complete: " + mark);
  rows.folder = rows_folder(data);
  TRY(out.rows, open_or_drop_rows(rows, out.notes));
  return out;
}

Result<void> check_data_folder(const std::string& data) {
  if (!has_format(data))
    return fail(Code::not_found, "NO_DATA_DIR",
                fmt::format("{} is not a data directory of pawl; name one with --data DIR", data));
  return check_format(data);
}

Result<std::unique_ptr<Journal>> open_data_journal(const std::string& data) {
  TRY_OK(check_data_folder(data));
  return open_journal({.folder = journal_folder(data)});
}

}  // namespace pawl

#include "storage/data_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "storage/file/disk.h"

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
  Stores out;
  OpenNote note;
  journal.folder = journal_folder(data);
  TRY(out.journal, open_journal(journal, &note));
  if (!note.empty()) out.notes.push_back(note);
  rows.folder = rows_folder(data);
  TRY(out.rows, open_or_drop_rows(rows, out.notes));
  return out;
}

Result<std::unique_ptr<Journal>> open_data_journal(const std::string& data) {
  if (!has_format(data))
    return fail(Code::not_found, "NO_DATA_DIR",
                fmt::format("{} is not a data directory of pawl; name one with --data DIR", data));
  TRY_OK(check_format(data));
  return open_journal({.folder = journal_folder(data)});
}

}  // namespace pawl

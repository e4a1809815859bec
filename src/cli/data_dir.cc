#include "cli/data_dir.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "storage/file_journal.h"

namespace pawl::cli {

namespace fs = std::filesystem;

static constexpr std::string_view kFormat = "pawl data 1, 1 shard";

std::string journal_folder(const std::string& data) { return data + "/journal"; }
std::string rows_folder(const std::string& data) { return data + "/rows"; }

Result<void> write_format(const std::string& data) {
  std::error_code ec;
  fs::create_directories(data, ec);
  if (ec)
    return fail(Code::unavailable, "DATA_DIR", fmt::format("cannot make {}: {}; choose another --data or mend its permissions", data, ec.message()));
  std::ofstream out(data + "/FORMAT");
  out << kFormat << "\n";
  out.close();
  if (!out) return fail(Code::unavailable, "DATA_DIR", fmt::format("cannot write {}/FORMAT: is the disk full or read-only?", data));
  return {};
}

static Result<void> check_format(const std::string& data) {
  std::ifstream in(data + "/FORMAT");
  std::string line;
  std::getline(in, line);
  if (line == kFormat) return {};
  return fail(Code::invalid, "DATA_FORMAT",
              fmt::format("{}/FORMAT says '{}' and this binary reads '{}': use the pawl that wrote it, or `pawl restore` a backup", data, line, kFormat));
}

Result<Opened> open_data(const std::string& data) {
  std::error_code ec;
  if (!fs::exists(data + "/FORMAT", ec)) {
    if (fs::exists(data, ec) && !fs::is_empty(data, ec))
      return fail(Code::invalid, "NOT_A_DATA_DIR",
                  fmt::format("{} is not empty and holds no FORMAT file: it is no data directory of pawl; choose another --data", data));
    TRY_OK(write_format(data));
  }
  TRY_OK(check_format(data));
  Opened out;
  OpenNote note;
  TRY(out.journal, open_journal({.backend = "file", .folder = journal_folder(data)}, &note));
  if (!note.empty()) out.notes.push_back(note);
  auto rows = open_rows({.backend = "rocksdb", .folder = rows_folder(data)});
  if (!rows && rows.error().code == Code::corrupt) {
    out.notes.push_back(fmt::format("the rows could not be opened ({}); they are rebuilt from the journal", rows.error().message));
    fs::remove_all(rows_folder(data), ec);
    rows = open_rows({.backend = "rocksdb", .folder = rows_folder(data)});
  }
  if (!rows) return fail(std::move(rows.error()));
  out.rows = std::move(*rows);
  return out;
}

Result<std::unique_ptr<Journal>> open_data_journal(const std::string& data) {
  std::error_code ec;
  if (!fs::exists(data + "/FORMAT", ec))
    return fail(Code::not_found, "NO_DATA_DIR", fmt::format("{} is no data directory of pawl: name one with --data DIR", data));
  TRY_OK(check_format(data));
  return open_journal({.backend = "file", .folder = journal_folder(data)});
}

Result<Copied> copy_journal(const Journal& from, const std::string& data, const Progress& progress) {
  TRY_OK(write_format(data));
  FileJournalOptions options;
  options.folder = journal_folder(data);
  TRY(auto to, FileJournal::open(options));
  static constexpr size_t kGroupBytes = 1 << 20;
  std::vector<Bytes> group;
  size_t bytes = 0;
  Copied out;
  auto flush = [&]() -> Result<void> {
    std::vector<BytesView> views(group.begin(), group.end());
    TRY_OK(to->append(views, out.last - group.size()));
    group.clear();
    bytes = 0;
    return {};
  };
  if (from.first() > 1)
    return fail(Code::unsupported, "TRIMMED", "the journal's beginning was let go of: back up its checkpoint together with the folder instead");
  Seq last = from.last();
  TRY_OK(from.read(1, [&](Seq seq, BytesView entry) -> Result<bool> {
    if (seq > last) return false;
    group.emplace_back(entry);
    bytes += entry.size();
    out.bytes += entry.size();
    out.last = seq;
    if (bytes >= kGroupBytes) {
      TRY_OK(flush());
      if (progress) progress(seq, last);
    }
    return true;
  }));
  if (!group.empty()) TRY_OK(flush());
  return out;
}

}  // namespace pawl::cli

#include "storage/data_folder.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "storage/file/disk.h"
#include "storage/file/journal_folder.h"

namespace pawl {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFormat = "pawl data 1, 1 shard";
constexpr std::string_view kManyBegin = "pawl data 2, ";
constexpr std::string_view kManyEnd = " shards";
constexpr char kFormatFile[] = "FORMAT";
constexpr char kShardsFolder[] = "shards";

std::string format_line(uint32_t shards) {
  return shards == 1 ? std::string(kFormat) : fmt::format("{}{}{}", kManyBegin, shards, kManyEnd);
}

// The number of shards in a line of FORMAT; nothing when it is not a line of this version.
std::optional<uint32_t> shards_in(std::string_view line) {
  if (line == kFormat) return 1;
  if (!line.starts_with(kManyBegin) || !line.ends_with(kManyEnd)) return std::nullopt;
  const std::string_view number =
      line.substr(kManyBegin.size(), line.size() - kManyBegin.size() - kManyEnd.size());
  uint32_t shards = 0;
  auto [end, error] = std::from_chars(number.begin(), number.end(), shards);
  if (error != std::errc() || end != number.end() || shards < 2 || shards > kMaxShards)
    return std::nullopt;
  return shards;
}

// True when the directory may become a data directory. It may hold what an interrupted first start
// and a new file system leave there. The folders of shards are made before FORMAT is written, and
// are empty then.
bool is_unused(const std::string& data) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(data, ec)) {
    const std::string name = entry.path().filename();
    if (name == kShardsFolder) {
      for (const auto& shard : fs::directory_iterator(entry.path(), ec))
        if (!fs::is_empty(shard.path(), ec)) return false;
    } else if (name != std::string(kFormatFile) + ".tmp" && name != "lost+found") {
      return false;
    }
  }
  return true;
}

bool has_format(const std::string& data) {
  std::error_code ec;
  return fs::exists(data + "/" + kFormatFile, ec);
}

Result<uint32_t> check_format(const std::string& data) {
  std::ifstream in(data + "/" + kFormatFile);
  std::string line;
  std::getline(in, line);
  if (auto shards = shards_in(line)) return *shards;
  return fail(Code::invalid, "DATA_FORMAT",
              fmt::format("{}/FORMAT says '{}', but this version of pawl reads '{}' and '{}': use "
                          "the version that wrote it, or `pawl restore` a backup",
                          data, line, kFormat, format_line(2)));
}

// The folders are made before FORMAT, so a missing one was lost.
Result<void> check_shards_are_there(const std::string& data, uint32_t shards) {
  std::error_code ec;
  for (uint32_t shard = 0; shard < shards; ++shard)
    if (!fs::exists(shard_folder(data, shards, shard), ec))
      return fail(Code::corrupt, "SHARD_LOST",
                  fmt::format("{} is gone: everything acknowledged in this shard is lost. {}",
                              shard_folder(data, shards, shard), kLossRemedy));
  return {};
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

std::string shard_folder(const std::string& data, uint32_t shards, uint32_t shard) {
  return shards == 1 ? data : fmt::format("{}/{}/{:04}", data, kShardsFolder, shard);
}
std::string journal_folder(const std::string& folder) { return folder + "/journal"; }
std::string rows_folder(const std::string& folder) { return folder + "/rows"; }

Result<void> write_format(const std::string& data, uint32_t shards) {
  std::error_code ec;
  for (uint32_t shard = 0; shard < shards && !ec; ++shard)
    fs::create_directories(shard_folder(data, shards, shard), ec);
  if (ec)
    return fail(
        Code::unavailable, "DATA_DIR",
        fmt::format("cannot make {}: {}; choose another data directory or change its permissions",
                    data, ec.message()));
  fs::permissions(data, fs::perms::owner_all, ec);
  Disk disk;
  auto written = replace_file(disk, data, kFormatFile, format_line(shards) + "\n");
  if (!written)
    return fail(Code::unavailable, "DATA_DIR",
                fmt::format("cannot write {}/FORMAT: {}", data, written.error().message));
  return {};
}

Result<uint32_t> prepare_data(const std::string& data, uint32_t shards,
                              std::vector<std::string>* notes) {
  if (!has_format(data)) {
    if (!is_unused(data))
      return fail(Code::invalid, "NOT_A_DATA_DIR",
                  fmt::format("{} is not empty and has no FORMAT file, so it is not a data "
                              "directory of pawl; choose another",
                              data));
    TRY_OK(write_format(data, std::max(shards, 1u)));
  }
  TRY(uint32_t has, check_format(data));
  if (shards != 0 && shards != has)
    return fail(Code::invalid, kShardNumber,
                fmt::format("{} was made with --shards {}, and the number never changes: start "
                            "with --shards {} or without the flag, or choose a new data directory",
                            data, has, has));
  TRY_OK(check_shards_are_there(data, has));
  std::vector<std::string> ignored;
  close_to_others(data, notes ? *notes : ignored);
  return has;
}

Result<Stores> open_shard_data(const std::string& folder, JournalOptions journal,
                               RowsOptions rows) {
  TRY_OK(check_journal_is_there(folder, journal, rows));
  Stores out;
  OpenNote note;
  journal.folder = journal_folder(folder);
  TRY(out.journal, open_journal(journal, &note));
  if (!note.empty()) out.notes.push_back(note);
  for (const std::string& mark : read_loss_marks(journal.folder))
    out.notes.push_back("the journal is not complete: " + mark);
  rows.folder = rows_folder(folder);
  TRY(out.rows, open_or_drop_rows(rows, out.notes));
  return out;
}

Result<Stores> open_data(const std::string& data, JournalOptions journal, RowsOptions rows) {
  std::vector<std::string> notes;
  TRY_OK(prepare_data(data, 1, &notes));
  TRY(Stores out, open_shard_data(data, std::move(journal), std::move(rows)));
  out.notes.insert(out.notes.begin(), notes.begin(), notes.end());
  return out;
}

Result<uint32_t> check_data_folder(const std::string& data) {
  if (!has_format(data))
    return fail(Code::not_found, "NO_DATA_DIR",
                fmt::format("{} is not a data directory of pawl; name one with --data DIR", data));
  return check_format(data);
}

Result<std::unique_ptr<Journal>> open_data_journal(const std::string& data, uint32_t shard) {
  TRY(uint32_t shards, check_data_folder(data));
  if (shard >= shards)
    return fail(Code::not_found, "NO_SHARD",
                fmt::format("{} has no shard {}: its shards are 0 to {}", data, shard, shards - 1));
  TRY_OK(check_shards_are_there(data, shards));
  return open_journal({.folder = journal_folder(shard_folder(data, shards, shard))});
}

}  // namespace pawl

#include "storage/open.h"

#include <fmt/format.h>

#include "storage/file/file_journal.h"
#include "storage/memory/memory.h"
#include "storage/rocks/rocks_rows.h"

namespace pawl {
namespace {

Result<std::unique_ptr<Journal>> file_journal(const JournalOptions& options, OpenNote& note) {
  FileJournalOptions file;
  file.folder = options.folder;
  file.segment_bytes = options.segment_bytes;
  file.sync = options.unflushed ? Sync::none : Sync::flush;
  TRY(auto journal, FileJournal::open(std::move(file)));
  note = journal->recovered().text();
  return journal;
}

Result<std::unique_ptr<Journal>> memory_journal(const JournalOptions&, OpenNote&) {
  return std::make_unique<MemoryJournal>();
}

Result<std::unique_ptr<Rows>> rocks_rows(const RowsOptions& options) {
  RocksOptions rocks;
  rocks.folder = options.folder;
  rocks.cache_bytes = options.cache_bytes;
  if (options.memory) share_rocks_memory(rocks, *options.memory);
  return open_rocks_rows(rocks);
}

Result<std::unique_ptr<Rows>> memory_rows(const RowsOptions& options) {
  return MemoryRows::load(options.folder);
}

struct JournalBackend {
  std::string_view name;
  Result<std::unique_ptr<Journal>> (*open)(const JournalOptions&, OpenNote&);
};
constexpr JournalBackend kJournals[] = {
    {"file", file_journal},      // segment files on the local disk
    {"memory", memory_journal},  // lost when the process ends
};

struct RowsBackend {
  std::string_view name;
  Result<std::unique_ptr<Rows>> (*open)(const RowsOptions&);
};
constexpr RowsBackend kRows[] = {
    {"rocksdb", rocks_rows},
    {"memory", memory_rows},
};

// The error for a name that is not in the table; it lists the names that are.
template <class Table>
Error unknown(std::string_view what, const std::string& name, const Table& table) {
  std::string known;
  for (const auto& row : table)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  return Error{Code::invalid, "UNKNOWN_BACKEND",
               fmt::format("there is no {} backend '{}'; the backends are {}", what, name, known)};
}

}  // namespace

Result<std::unique_ptr<Journal>> open_journal(const JournalOptions& options, OpenNote* note) {
  OpenNote ignored;
  for (const auto& backend : kJournals) {
    if (backend.name == options.backend) return backend.open(options, note ? *note : ignored);
  }
  return fail(unknown("journal", options.backend, kJournals));
}

std::shared_ptr<RowsMemory> make_rows_memory(size_t cache_bytes, size_t shards) {
  return make_rocks_memory(cache_bytes, shards);
}

Result<std::unique_ptr<Rows>> open_rows(const RowsOptions& options) {
  for (const auto& backend : kRows) {
    if (backend.name == options.backend) return backend.open(options);
  }
  return fail(unknown("rows", options.backend, kRows));
}

}  // namespace pawl

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "base/hash.h"
#include "storage/memory/memory.h"

namespace pawl {

// The versions of every key and the snapshots that still look at them.
class MemoryRows::Table {
 public:
  using Version = uint64_t;
  struct Cell {
    Version version;
    std::optional<Bytes> value;  // none: erased
  };
  struct Row {
    Bytes key, value;
  };

  Result<void> apply_changes(const RowChanges& changes, Seq applied) {
    std::unique_lock lock(mutex_);
    if (applied < applied_) {
      return fail(Code::internal, "APPLIED_BACKWARDS",
                  fmt::format("the rows have applied {} and were given {}", applied_, applied));
    }
    ++now_;
    changes.each([&](BytesView key, BytesView value) { write(key, Bytes(value)); },
                 [&](BytesView key) { write(key, std::nullopt); });
    applied_ = applied;
    sweep();
    return {};
  }

  // Pins the present version; unpin() lets it go.
  std::pair<Version, Seq> pin() {
    std::unique_lock lock(mutex_);
    pinned_.insert(now_);
    return {now_, applied_};
  }
  void unpin(Version version) {
    std::unique_lock lock(mutex_);
    pinned_.erase(pinned_.find(version));
  }

  std::optional<Bytes> get(BytesView key, std::optional<Version> at) const {
    std::shared_lock lock(mutex_);
    auto found = cells_.find(key);
    if (found == cells_.end()) return std::nullopt;
    const Cell* cell = visible(found->second, at.value_or(now_));
    return cell ? cell->value : std::nullopt;
  }

  // Up to `most` rows of [first, limit) in order; a scan goes on from the key after the last.
  std::vector<Row> some(BytesView first, BytesView limit, Version at, size_t max) const {
    std::shared_lock lock(mutex_);
    std::vector<Row> rows;
    for (auto it = cells_.lower_bound(first); it != cells_.end() && rows.size() < max; ++it) {
      if (!limit.empty() && it->first >= limit) break;
      add(rows, *it, at);
    }
    return rows;
  }
  std::vector<Row> some_back(BytesView first, BytesView limit, Version at, size_t max) const {
    std::shared_lock lock(mutex_);
    std::vector<Row> rows;
    for (auto it = limit.empty() ? cells_.end() : cells_.lower_bound(limit);
         it != cells_.begin() && rows.size() < max;) {
      --it;
      if (it->first < first) break;
      add(rows, *it, at);
    }
    return rows;
  }

  Seq applied() const {
    std::shared_lock lock(mutex_);
    return applied_;
  }

  // Every row is erased, as of now: snapshots go on seeing what they saw.
  void reset() {
    std::unique_lock lock(mutex_);
    ++now_;
    for (auto& [key, cells] : cells_) {
      cells.push_back({now_, std::nullopt});
      stale_.push_back(key);
    }
    applied_ = 0;
    swept_ = 0;
    sweep();
  }

  // Everything after `version` never happened.
  void rewind(Version version, Seq applied) {
    std::unique_lock lock(mutex_);
    for (auto& [key, cells] : cells_) {
      while (!cells.empty() && cells.back().version > version)
        cells.pop_back();
      stale_.push_back(key);
    }
    applied_ = applied;
    swept_ = 0;
    sweep();
  }

 private:
  static const Cell* visible(const std::vector<Cell>& cells, Version at) {
    for (size_t i = cells.size(); i-- > 0;) {
      if (cells[i].version <= at) return &cells[i];
    }
    return nullptr;
  }

  template <class Entry>
  static void add(std::vector<Row>& rows, const Entry& entry, Version at) {
    const Cell* cell = visible(entry.second, at);
    if (cell && cell->value) rows.push_back({entry.first, *cell->value});
  }

  // A version that no snapshot sees is replaced where it stands.
  void write(BytesView key, std::optional<Bytes> value) {
    auto found = cells_.find(key);
    if (found == cells_.end()) {
      if (!value) return;
      found = cells_.emplace(Bytes(key), std::vector<Cell>()).first;
    }
    Version newest_pin = pinned_.empty() ? 0 : *pinned_.rbegin();
    std::vector<Cell>& cells = found->second;
    if (!cells.empty() && cells.back().version > newest_pin)
      cells.back() = {now_, std::move(value)};
    else
      cells.push_back({now_, std::move(value)});
    if (cells.size() > 1)
      stale_.push_back(Bytes(key));
    else if (!cells.back().value)
      cells_.erase(found);
  }

  // Lets go of versions that no snapshot sees. What a snapshot still holds stays on the list, and
  // the list is walked only when the oldest snapshot has moved.
  void sweep() {
    Version oldest = pinned_.empty() ? now_ : *pinned_.begin();
    if (!pinned_.empty() && oldest == swept_) return;
    swept_ = oldest;
    std::sort(stale_.begin(), stale_.end());
    stale_.erase(std::unique(stale_.begin(), stale_.end()), stale_.end());
    std::erase_if(stale_, [&](const Bytes& key) { return settle(key, oldest); });
  }

  // True when the key has nothing more to let go of.
  bool settle(const Bytes& key, Version oldest) {
    auto found = cells_.find(key);
    if (found == cells_.end()) return true;
    std::vector<Cell>& cells = found->second;
    size_t base = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].version <= oldest) base = i;
    }
    cells.erase(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(base));
    if (cells.empty() || (cells.size() == 1 && !cells[0].value && cells[0].version <= oldest)) {
      cells_.erase(found);
      return true;
    }
    return cells.size() == 1 && cells[0].value.has_value();
  }

  mutable std::shared_mutex mutex_;
  std::map<Bytes, std::vector<Cell>, std::less<>> cells_;
  std::multiset<Version> pinned_;
  std::vector<Bytes> stale_;
  Version now_ = 1;
  Version swept_ = 0;
  Seq applied_ = 0;
};

class MemoryRows::Snapshot final : public RowsSnapshot {
 public:
  explicit Snapshot(std::shared_ptr<Table> table) : table_(std::move(table)) {
    std::tie(version_, applied_) = table_->pin();
  }
  ~Snapshot() override { table_->unpin(version_); }

  Result<std::optional<Bytes>> get(BytesView key) const override {
    return table_->get(key, version_);
  }

  Result<void> scan(BytesView first, BytesView limit, const Visit& visit) const override {
    Bytes from(first);
    for (;;) {
      auto rows = table_->some(from, limit, version_, kHandful);
      for (const auto& row : rows) {
        if (!visit(row.key, row.value)) return {};
      }
      if (rows.size() < kHandful) return {};
      from = rows.back().key + '\0';
    }
  }

  Result<void> scan_back(BytesView first, BytesView limit, const Visit& visit) const override {
    Bytes until(limit);
    for (;;) {
      auto rows = table_->some_back(first, until, version_, kHandful);
      for (const auto& row : rows) {
        if (!visit(row.key, row.value)) return {};
      }
      // The empty key has none before it, and as a limit it would mean the end.
      if (rows.size() < kHandful || rows.back().key.empty()) return {};
      until = rows.back().key;
    }
  }

  Seq applied() const override { return applied_; }
  Table::Version version() const { return version_; }

 private:
  // Rows leave the lock a handful at a time: the visitor may be slow, or may apply.
  static constexpr size_t kHandful = 64;
  std::shared_ptr<Table> table_;
  Table::Version version_ = 0;
  Seq applied_ = 0;
};

MemoryRows::MemoryRows() : table_(std::make_shared<Table>()) {}
Result<void> MemoryRows::apply_changes(const RowChanges& changes, Seq applied) {
  return table_->apply_changes(changes, applied);
}
Seq MemoryRows::applied() const { return table_->applied(); }
Result<std::optional<Bytes>> MemoryRows::get(BytesView key) const {
  return table_->get(key, std::nullopt);
}
MemoryRows::~MemoryRows() = default;

std::unique_ptr<RowsSnapshot> MemoryRows::snapshot() const {
  return std::make_unique<Snapshot>(table_);
}

Result<void> MemoryRows::flush() {
  flushed_ = std::make_unique<Snapshot>(table_);
  return {};
}

Result<void> MemoryRows::reset() {
  flushed_.reset();
  table_->reset();
  return {};
}

void MemoryRows::crash() {
  if (flushed_)
    table_->rewind(flushed_->version(), flushed_->applied());
  else
    table_->reset();
}

// A checkpoint of memory rows is one file: applied, then every row, then the CRC32C of all that.
Result<void> MemoryRows::checkpoint(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::create_directory(folder, error)) {
    return fail(
        Code::conflict, "CHECKPOINT_FOLDER",
        fmt::format("cannot make the checkpoint folder {}: {}; name one that does not exist yet",
                    folder, error ? error.message() : "it exists"));
  }
  Snapshot now(table_);
  Bytes out;
  Writer writer(out);
  writer.fixed64(now.applied());
  TRY_OK(now.scan({}, {}, [&](BytesView key, BytesView value) {
    writer.str(key);
    writer.str(value);
    return true;
  }));
  writer.fixed32(crc32c(out));
  std::ofstream file(folder + "/rows", std::ios::binary);
  file.write(out.data(), static_cast<std::streamsize>(out.size()));
  file.close();
  if (!file) {
    return fail(Code::unavailable, "CHECKPOINT_WRITE",
                fmt::format("cannot write {}/rows; make room on the disk and try again", folder));
  }
  return {};
}

Result<std::unique_ptr<MemoryRows>> MemoryRows::load(const std::string& folder) {
  auto rows = std::make_unique<MemoryRows>();
  std::ifstream file(folder + "/rows", std::ios::binary);
  if (folder.empty() || !file) return rows;
  Bytes in((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  BytesView body = BytesView(in).substr(0, in.size() < 4 ? 0 : in.size() - 4);
  Reader reader(body);
  Seq applied = reader.fixed64();
  RowBatch batch;
  while (reader.ok() && !reader.rest().empty()) {
    BytesView key = reader.str();
    batch.put(key, reader.str());
  }
  if (!reader.ok() || Reader(BytesView(in).substr(body.size())).fixed32() != crc32c(body)) {
    return fail(
        Code::corrupt, "ROWS_CORRUPT",
        fmt::format(
            "{}/rows is damaged; remove the folder and the rows are rebuilt from the journal",
            folder));
  }
  TRY_OK(rows->apply(batch, applied));
  return rows;
}

}  // namespace pawl

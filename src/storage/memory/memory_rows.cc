#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "base/hash.h"
#include "storage/memory/memory.h"

namespace pawl {

// The versions of every key, and the versions that snapshots have pinned.
class MemoryRows::Table {
 public:
  using Version = uint64_t;
  struct VersionedValue {
    Version version;
    std::optional<Bytes> value;  // nothing: erased
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
    for (BytesView prefix : changes.erased_prefixes()) {
      std::vector<Bytes> found;
      for (auto it = rows_.lower_bound(prefix);
           it != rows_.end() && BytesView(it->first).starts_with(prefix); ++it)
        found.emplace_back(it->first);
      for (const Bytes& key : found)
        write(key, std::nullopt);
    }
    applied_ = applied;
    sweep();
    return {};
  }

  // Keeps the current version until unpin().
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
    auto found = rows_.find(key);
    if (found == rows_.end()) return std::nullopt;
    const VersionedValue* visible_value = visible(found->second, at.value_or(now_));
    return visible_value ? visible_value->value : std::nullopt;
  }

  // Returns up to `max` rows of [first, limit), in ascending or descending order of their keys.
  std::vector<Row> first_rows(BytesView first, BytesView limit, Version at, size_t max) const {
    std::shared_lock lock(mutex_);
    std::vector<Row> rows;
    for (auto it = rows_.lower_bound(first); it != rows_.end() && rows.size() < max; ++it) {
      if (!limit.empty() && it->first >= limit) break;
      add(rows, *it, at);
    }
    return rows;
  }
  std::vector<Row> last_rows(BytesView first, BytesView limit, Version at, size_t max) const {
    std::shared_lock lock(mutex_);
    std::vector<Row> rows;
    for (auto it = limit.empty() ? rows_.end() : rows_.lower_bound(limit);
         it != rows_.begin() && rows.size() < max;) {
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

  // Erases every row in a new version; snapshots keep what they see.
  void reset() {
    std::unique_lock lock(mutex_);
    ++now_;
    for (auto& [key, versions] : rows_) {
      versions.push_back({now_, std::nullopt});
      stale_.push_back(key);
    }
    applied_ = 0;
    swept_ = 0;
    sweep();
  }

  // Removes every version after `version`.
  void rewind(Version version, Seq applied) {
    std::unique_lock lock(mutex_);
    for (auto& [key, versions] : rows_) {
      while (!versions.empty() && versions.back().version > version)
        versions.pop_back();
      stale_.push_back(key);
    }
    applied_ = applied;
    swept_ = 0;
    sweep();
  }

 private:
  static const VersionedValue* visible(const std::vector<VersionedValue>& versions, Version at) {
    for (size_t i = versions.size(); i-- > 0;) {
      if (versions[i].version <= at) return &versions[i];
    }
    return nullptr;
  }

  template <class Entry>
  static void add(std::vector<Row>& rows, const Entry& entry, Version at) {
    const VersionedValue* visible_value = visible(entry.second, at);
    if (visible_value && visible_value->value) rows.push_back({entry.first, *visible_value->value});
  }

  // When no snapshot sees the newest version of the key, it is replaced in place.
  void write(BytesView key, std::optional<Bytes> value) {
    auto found = rows_.find(key);
    if (found == rows_.end()) {
      if (!value) return;
      found = rows_.emplace(Bytes(key), std::vector<VersionedValue>()).first;
    }
    Version newest_pin = pinned_.empty() ? 0 : *pinned_.rbegin();
    std::vector<VersionedValue>& versions = found->second;
    if (!versions.empty() && versions.back().version > newest_pin)
      versions.back() = {now_, std::move(value)};
    else
      versions.push_back({now_, std::move(value)});
    if (versions.size() > 1)
      stale_.push_back(Bytes(key));
    else if (!versions.back().value)
      rows_.erase(found);
  }

  // Removes versions that no snapshot sees. Keys with versions that a snapshot still sees stay in
  // stale_. Nothing is done unless the oldest pinned version has changed.
  void sweep() {
    Version oldest = pinned_.empty() ? now_ : *pinned_.begin();
    if (!pinned_.empty() && oldest == swept_) return;
    swept_ = oldest;
    std::sort(stale_.begin(), stale_.end());
    stale_.erase(std::unique(stale_.begin(), stale_.end()), stale_.end());
    std::erase_if(stale_, [&](const Bytes& key) { return remove_old_versions(key, oldest); });
  }

  // Returns true when the key has no further version to remove later.
  bool remove_old_versions(const Bytes& key, Version oldest) {
    auto found = rows_.find(key);
    if (found == rows_.end()) return true;
    std::vector<VersionedValue>& versions = found->second;
    size_t base = 0;
    for (size_t i = 0; i < versions.size(); ++i) {
      if (versions[i].version <= oldest) base = i;
    }
    versions.erase(versions.begin(), versions.begin() + static_cast<std::ptrdiff_t>(base));
    if (versions.empty() ||
        (versions.size() == 1 && !versions[0].value && versions[0].version <= oldest)) {
      rows_.erase(found);
      return true;
    }
    return versions.size() == 1 && versions[0].value.has_value();
  }

  mutable std::shared_mutex mutex_;
  std::map<Bytes, std::vector<VersionedValue>, std::less<>> rows_;
  std::multiset<Version> pinned_;
  std::vector<Bytes> stale_;  // keys with versions that may be removable
  Version now_ = 1;
  Version swept_ = 0;  // the oldest pinned version at the last sweep
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
      auto rows = table_->first_rows(from, limit, version_, kChunkRows);
      for (const auto& row : rows) {
        if (!visit(row.key, row.value)) return {};
      }
      if (rows.size() < kChunkRows) return {};
      from = rows.back().key + '\0';
    }
  }

  Result<void> scan_back(BytesView first, BytesView limit, const Visit& visit) const override {
    Bytes until(limit);
    for (;;) {
      auto rows = table_->last_rows(first, until, version_, kChunkRows);
      for (const auto& row : rows) {
        if (!visit(row.key, row.value)) return {};
      }
      // No key is before the empty key, and an empty limit would mean the end of the rows.
      if (rows.size() < kChunkRows || rows.back().key.empty()) return {};
      until = rows.back().key;
    }
  }

  Seq applied() const override { return applied_; }
  Table::Version version() const { return version_; }

 private:
  // Rows are copied in chunks and visited without the lock: the visitor may be slow, or may apply
  // changes.
  static constexpr size_t kChunkRows = 64;
  std::shared_ptr<Table> table_;
  Table::Version version_ = 0;
  Seq applied_ = 0;
};

MemoryRows::MemoryRows() : table_(std::make_shared<Table>()) {}
MemoryRows::~MemoryRows() = default;

Result<void> MemoryRows::apply_changes(const RowChanges& changes, Seq applied) {
  return table_->apply_changes(changes, applied);
}
Seq MemoryRows::applied() const { return table_->applied(); }
Result<std::optional<Bytes>> MemoryRows::get(BytesView key) const {
  return table_->get(key, std::nullopt);
}

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

// A checkpoint of memory rows is one file: applied, every row, and the CRC32C of both.
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
                fmt::format("cannot write {}/rows; free space on the disk and try again", folder));
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

#include "storage/rocks/rocks_rows.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "storage/row_sizes.h"

namespace pawl {
namespace {

// The key of a row is stored with the prefix kRow. The applied seq is stored under kApplied, which
// no row can have as key and no scan visits.
constexpr char kApplied[] = "a";
constexpr char kRow = 'r';
constexpr char kAfterRows[] = "s";

// Batches smaller than this are not ingested as a file: a file is synced and entered in the
// manifest, which costs more than the memtable.
constexpr size_t kLeastIngestBytes = 1u << 20;
// Number of level 0 files at which RocksDB begins to merge them, in normal operation and while a
// replay loads files. At 20 files RocksDB would slow writers down.
constexpr int kMergeFrom = 4;
constexpr int kMergeFromWhileLoading = 16;

// Free space that must remain beside a memtable when it is written as a table.
constexpr uint64_t kSpareBytes = 8u << 20;

rocksdb::Slice slice(BytesView bytes) { return {bytes.data(), bytes.size()}; }
BytesView bytes_of(const rocksdb::Slice& s) { return {s.data(), s.size()}; }

Bytes row_key(BytesView key) {
  Bytes out;
  out.reserve(key.size() + 1);
  out.push_back(kRow);
  out.append(key);
  return out;
}
Bytes limit_key(BytesView limit) { return limit.empty() ? Bytes(kAfterRows) : row_key(limit); }

// `corrupt` when rebuilding the rows helps, otherwise `unavailable`.
Error error_from(const rocksdb::Status& status, const std::string& folder, std::string_view verb) {
  if (status.IsCorruption() || status.IsNotSupported() || status.IsInvalidArgument() ||
      status.IsNotFound() || status.IsPathNotFound()) {
    return Error{Code::corrupt, std::string(kRowsCorrupt.name),
                 fmt::format("cannot {} the rows in {}: {}; restart the server and they are "
                             "rebuilt from the journal",
                             verb, folder, status.ToString())};
  }
  return Error{Code::unavailable, "ROWS_IO",
               fmt::format("cannot {} the rows in {}: {}; check that no other process uses the "
                           "folder and that the disk is writable and has space, then start again",
                           verb, folder, status.ToString())};
}

// The first of these that this build of RocksDB supports.
rocksdb::CompressionType compression() {
  auto known = rocksdb::GetSupportedCompressions();
  for (auto type : {rocksdb::kLZ4Compression, rocksdb::kZSTD, rocksdb::kSnappyCompression}) {
    if (std::find(known.begin(), known.end(), type) != known.end()) return type;
  }
  return rocksdb::kNoCompression;
}

rocksdb::Options tuned(const RocksOptions& options) {
  rocksdb::Options db;
  db.create_if_missing = true;
  db.max_background_jobs = 2;
  db.write_buffer_size = options.memtable_bytes;
  db.max_write_buffer_number = 3;
  db.memtable_prefix_bloom_size_ratio = 0.1;
  db.memtable_whole_key_filtering = true;
  // Batches are sorted, so each row is inserted near the previous row with the same prefix.
  db.memtable_insert_with_hint_prefix_extractor.reset(rocksdb::NewCappedPrefixTransform(2));
  // There is one writer, which would pay for the atomics of a concurrent memtable and gain nothing.
  db.allow_concurrent_memtable_write = false;
  db.enable_write_thread_adaptive_yield = false;
  db.enable_thread_tracking = false;
  db.compression = compression();
  db.level_compaction_dynamic_level_bytes = true;
  db.level0_file_num_compaction_trigger = kMergeFrom;
  db.bytes_per_sync = 1 << 20;
  db.max_open_files = options.open_files;
  db.keep_log_file_num = 2;
  db.max_log_file_size = 4 << 20;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.paranoid_checks = true;
  // The owner flushes before it closes. Closing must not flush: on a full disk RocksDB ends the
  // process with an assertion.
  db.avoid_flush_during_shutdown = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = options.cache ? options.cache : rocksdb::NewLRUCache(options.cache_bytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = true;
  table.format_version = 5;
  db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return db;
}

// Shared with the snapshots, because they must be released before the database closes.
struct Database {
  std::unique_ptr<rocksdb::DB> db;
  std::string folder;
  mutable std::mutex mutex{};
  mutable std::optional<Error> damage{};  // the first that was found; with mutex

  // The error of an operation. Damage is remembered, and marked for the next start.
  Error error_of(const rocksdb::Status& status, std::string_view verb) const {
    Error error = error_from(status, folder, verb);
    if (error.code != Code::corrupt) return error;
    std::lock_guard lock(mutex);
    if (!damage) {
      damage = error;
      // A mark that cannot be written is written when the damage is found again.
      std::ofstream(damage_mark(folder)) << error.message << "\n";
    }
    return error;
  }
};

Result<Seq> read_applied(const Database& database, const rocksdb::ReadOptions& how) {
  std::string found;
  rocksdb::Status status = database.db->Get(how, kApplied, &found);
  if (status.IsNotFound()) return Seq{0};
  if (!status.ok()) return fail(database.error_of(status, "read"));
  if (found.size() != 8) {
    return fail(
        database.error_of(rocksdb::Status::Corruption("the applied seq is not 8 bytes"), "read"));
  }
  return read_ordered64(found);
}

Result<std::optional<Bytes>> read_row(const Database& database, const rocksdb::ReadOptions& how,
                                      BytesView key) {
  rocksdb::PinnableSlice found;
  rocksdb::Status status =
      database.db->Get(how, database.db->DefaultColumnFamily(), slice(row_key(key)), &found);
  if (status.IsNotFound()) return std::optional<Bytes>();
  if (!status.ok()) return fail(database.error_of(status, "read"));
  return std::optional<Bytes>(bytes_of(found));
}

class RocksSnapshot final : public RowsSnapshot {
 public:
  RocksSnapshot(std::shared_ptr<Database> database, const rocksdb::Snapshot* snapshot)
      : database_(std::move(database)), snapshot_(snapshot) {
    how_.snapshot = snapshot_;
    // Opening has read the value and every batch writes it, so this fails only when the disk does.
    Result<Seq> applied = read_applied(*database_, how_);
    applied_ = applied ? *applied : 0;
  }
  ~RocksSnapshot() override { database_->db->ReleaseSnapshot(snapshot_); }

  Result<std::optional<Bytes>> get(BytesView key) const override {
    return read_row(*database_, how_, key);
  }

  Result<void> scan(BytesView first, BytesView limit, const Visit& visit) const override {
    Bytes upper = limit_key(limit);
    rocksdb::Slice upper_slice = slice(upper);
    rocksdb::ReadOptions how = how_;
    how.iterate_upper_bound = &upper_slice;
    std::unique_ptr<rocksdb::Iterator> it(database_->db->NewIterator(how));
    for (it->Seek(slice(row_key(first))); it->Valid(); it->Next()) {
      if (!visit(bytes_of(it->key()).substr(1), bytes_of(it->value()))) return {};
    }
    return finish(*it);
  }

  Result<void> scan_back(BytesView first, BytesView limit, const Visit& visit) const override {
    Bytes lower = row_key(first);
    Bytes upper = limit_key(limit);
    rocksdb::Slice lower_slice = slice(lower);
    rocksdb::ReadOptions how = how_;
    how.iterate_lower_bound = &lower_slice;
    std::unique_ptr<rocksdb::Iterator> it(database_->db->NewIterator(how));
    it->SeekForPrev(slice(upper));
    if (it->Valid() && bytes_of(it->key()) == upper) it->Prev();
    for (; it->Valid(); it->Prev()) {
      if (!visit(bytes_of(it->key()).substr(1), bytes_of(it->value()))) return {};
    }
    return finish(*it);
  }

  Seq applied() const override { return applied_; }

 private:
  Result<void> finish(const rocksdb::Iterator& it) const {
    if (!it.status().ok()) return fail(database_->error_of(it.status(), "scan"));
    return {};
  }
  std::shared_ptr<Database> database_;
  const rocksdb::Snapshot* snapshot_;
  rocksdb::ReadOptions how_;
  Seq applied_ = 0;
};

Result<std::shared_ptr<Database>> open_database(const RocksOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) {
    return fail(Code::unavailable, "ROWS_IO",
                fmt::format("cannot make the folder {}: {}; check that this user may write there",
                            options.folder, error.message()));
  }
  rocksdb::DB* raw = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(tuned(options), options.folder, &raw);
  if (!status.ok()) return fail(error_from(status, options.folder, "open"));
  auto out = std::make_shared<Database>();
  out->db.reset(raw);
  out->folder = options.folder;
  return out;
}

class RocksRows final : public Rows, public RowSizes {
 public:
  RocksRows(RocksOptions options, std::shared_ptr<Database> database, Seq applied)
      : options_(std::move(options)), database_(std::move(database)), applied_(applied) {}

  Result<void> apply_changes(const RowChanges& all, Seq applied) override {
    if (applied < applied_.load()) {
      return fail(
          Code::internal, "APPLIED_BACKWARDS",
          fmt::format("the rows have applied {} and were given {}", applied_.load(), applied));
    }
    if (std::exchange(loading_, false)) merge_from(kMergeFrom);
    // This batch may fill the memtable, which RocksDB then writes in the background.
    if (memtables() + all.bytes() > options_.memtable_bytes / 4 * 3) TRY_OK(check_space());
    rocksdb::WriteBatch changes(all.bytes() + 24 * all.count() + 64);
    const char prefix[] = {kRow};
    all.each(
        [&](BytesView key, BytesView value) {
          rocksdb::Slice parts[] = {{prefix, 1}, slice(key)};
          rocksdb::Slice body = slice(value);
          changes.Put(rocksdb::SliceParts(parts, 2), rocksdb::SliceParts(&body, 1));
        },
        [&](BytesView key) {
          rocksdb::Slice parts[] = {{prefix, 1}, slice(key)};
          changes.Delete(rocksdb::SliceParts(parts, 2));
        });
    for (BytesView erased : all.erased_prefixes())
      TRY_OK(erase_below(erased, all, changes));
    changes.Put(kApplied, ordered64(applied));
    rocksdb::WriteOptions how;
    how.disableWAL = true;
    rocksdb::Status status = database_->db->Write(how, &changes);
    if (!status.ok()) return fail(database_->error_of(status, "write"));
    applied_ = applied;
    return {};
  }

  Result<void> load(const RowChanges& all, Seq applied) override {
    bool large = all.bytes() >= kLeastIngestBytes && all.erased_prefixes().empty();
    if (!large || applied <= applied_.load() || !ingest(all, applied))
      return apply_changes(all, applied);
    applied_ = applied;
    if (!std::exchange(loading_, true)) merge_from(kMergeFromWhileLoading);
    return {};
  }

  Seq applied() const override { return applied_.load(); }

  Result<std::optional<Bytes>> get(BytesView key) const override {
    return read_row(*database_, rocksdb::ReadOptions(), key);
  }

  std::unique_ptr<RowsSnapshot> snapshot() const override {
    return std::make_unique<RocksSnapshot>(database_, database_->db->GetSnapshot());
  }

  Result<void> flush() override {
    TRY_OK(check_space());
    rocksdb::FlushOptions how;
    how.wait = true;
    rocksdb::Status status = database_->db->Flush(how);
    if (!status.ok()) return fail(database_->error_of(status, "flush"));
    return {};
  }

  Result<void> checkpoint(const std::string& folder) override {
    if (std::filesystem::exists(folder)) {
      return fail(
          Code::conflict, "CHECKPOINT_FOLDER",
          fmt::format("the checkpoint folder {} exists; name one that does not exist yet", folder));
    }
    rocksdb::Checkpoint* raw = nullptr;
    rocksdb::Status status = rocksdb::Checkpoint::Create(database_->db.get(), &raw);
    std::unique_ptr<rocksdb::Checkpoint> maker(raw);
    // A log size of 0 makes RocksDB flush first; there is no log that it could copy.
    if (status.ok()) status = maker->CreateCheckpoint(folder, 0);
    if (!status.ok()) return fail(database_->error_of(status, "copy"));
    return {};
  }

  // Rows are removed by a range deletion, because open snapshots must keep reading the old rows.
  // Compaction frees the space later.
  Result<void> reset() override {
    rocksdb::WriteBatch changes;
    changes.DeleteRange(std::string(1, kRow), kAfterRows);
    changes.Put(kApplied, ordered64(0));
    rocksdb::WriteOptions how;
    how.disableWAL = true;
    rocksdb::Status status = database_->db->Write(how, &changes);
    if (!status.ok()) return fail(database_->error_of(status, "reset"));
    applied_ = 0;
    return flush();
  }

  uint64_t approximate_bytes(BytesView first, BytesView limit) const override {
    const std::string from = std::string(1, kRow).append(first);
    const std::string to = std::string(1, kRow).append(limit);
    const rocksdb::Range range(from, to);
    // RocksDB's guess for memtables may be several times too large, so only files count.
    const rocksdb::SizeApproximationOptions how;
    uint64_t bytes = 0;
    auto status = database_->db->GetApproximateSizes(how, database_->db->DefaultColumnFamily(),
                                                     &range, 1, &bytes);
    return status.ok() ? bytes : 0;
  }

  Result<void> intact() const override {
    std::lock_guard lock(database_->mutex);
    if (database_->damage) return fail(*database_->damage);
    return {};
  }

 private:
  uint64_t memtables() const {
    uint64_t bytes = 0;
    database_->db->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &bytes);
    return bytes;
  }

  // Fails when the disk has no room for the memtables. RocksDB is not asked to try: when it cannot
  // write a file it ends the process with an assertion.
  Result<void> check_space() const {
    std::error_code unknown;
    const auto space = std::filesystem::space(options_.folder, unknown);
    const uint64_t needed = memtables() + kSpareBytes;
    if (unknown || space.available >= needed) return {};
    return fail(error_from(
        rocksdb::Status::NoSpace(fmt::format(
            "No space left on device: {} bytes are needed, {} are free", needed, space.available)),
        options_.folder, "write"));
  }

  // Row by row: very many erased ranges would slow down every scan until they are merged away.
  Result<void> erase_below(BytesView prefix, const RowChanges& all, rocksdb::WriteBatch& changes) {
    std::string name(1, kRow);
    name.append(prefix);
    std::unique_ptr<rocksdb::Iterator> at(database_->db->NewIterator(rocksdb::ReadOptions()));
    for (at->Seek(name); at->Valid() && at->key().starts_with(name); at->Next())
      changes.Delete(at->key());
    if (!at->status().ok()) return fail(database_->error_of(at->status(), "read"));
    for (const RowChange& change : all.all())
      if (change.kind != RowKind::erase && change.key.starts_with(prefix)) {
        name.resize(1);
        changes.Delete(name.append(change.key));
      }
    return {};
  }

  // Writes sorted changes as a table file and adds the file to the database, which avoids the
  // memtable. Returns false when that is not possible, for example when the changes are not sorted;
  // then nothing has changed.
  bool ingest(const RowChanges& all, Seq applied) {
    std::string path = options_.folder + "/batch.tmp";
    rocksdb::SstFileWriter file(rocksdb::EnvOptions(), database_->db->GetOptions());
    rocksdb::Status status = file.Open(path);
    if (status.ok()) status = file.Put(kApplied, ordered64(applied));
    std::string name(1, kRow);
    auto named = [&](BytesView key) {
      name.resize(1);
      return rocksdb::Slice(name.append(key));
    };
    all.each(
        [&](BytesView key, BytesView value) {
          if (status.ok()) status = file.Put(named(key), slice(value));
        },
        [&](BytesView key) {
          if (status.ok()) status = file.Delete(named(key));
        });
    if (status.ok()) status = file.Finish();
    rocksdb::IngestExternalFileOptions how;
    how.move_files = true;
    how.failed_move_fall_back_to_copy = true;
    how.write_global_seqno = false;
    if (status.ok()) status = database_->db->IngestExternalFile({path}, how);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return status.ok();
  }

  // Sets the number of level 0 files at which RocksDB merges them. Merging loaded files by fours
  // took a fifth of the time of a replay. A failure only costs time, so it is ignored.
  void merge_from(int files) {
    (void)database_->db->SetOptions({{"level0_file_num_compaction_trigger", std::to_string(files)}})
        .ok();
  }

  RocksOptions options_;
  std::shared_ptr<Database> database_;
  std::atomic<Seq> applied_;
  bool loading_ = false;
};

}  // namespace

namespace {
// Memtables of all shards together, and open files, for one of each of the shards. A memtable of
// less than the minimum would be written to a file every few groups.
constexpr size_t kMemtables = 128u << 20;
constexpr size_t kLeastMemtable = 512u << 10;
constexpr size_t kOpenFiles = 1024;
constexpr size_t kLeastOpenFiles = 16;

struct RocksMemory final : RowsMemory {
  RocksMemory(size_t cache_bytes, size_t shards)
      : cache(rocksdb::NewLRUCache(cache_bytes)), shards(shards) {}
  const std::shared_ptr<rocksdb::Cache> cache;
  const size_t shards;
};
}  // namespace

std::shared_ptr<RowsMemory> make_rocks_memory(size_t cache_bytes, size_t shards) {
  return std::make_shared<RocksMemory>(cache_bytes, shards);
}

void share_rocks_memory(RocksOptions& options, const RowsMemory& memory) {
  const auto& shared = dynamic_cast<const RocksMemory&>(memory);
  options.cache = shared.cache;
  options.memtable_bytes = std::max(kLeastMemtable, kMemtables / shared.shards);
  options.open_files = static_cast<int>(std::max(kLeastOpenFiles, kOpenFiles / shared.shards));
}

Result<std::unique_ptr<Rows>> open_rocks_rows(const RocksOptions& options) {
  TRY(auto database, open_database(options));
  TRY(Seq applied, read_applied(*database, rocksdb::ReadOptions()));
  return std::make_unique<RocksRows>(options, std::move(database), applied);
}

}  // namespace pawl

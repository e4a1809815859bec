#pragma once
// Hot cells, decoded where their program decoded them. Holds durable versions only and is bounded by
// bytes; what falls out is read again from the rows. A version that the rows do not have yet stays
// until they do, so a reader never sees an older one; that a cell was erased is forgotten then. Safe
// from any thread.

#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "kernel/cell.h"
#include "storage/rows.h"

namespace pawl {

class CellCache {
 public:
  CellCache(const Rows& rows, size_t max_bytes) : rows_(rows), shard_bytes_(max_bytes / kShards) {}

  // The newest durable version, absent cells as version 0 (absence is not cached).
  Result<Cell> read(BytesView key);
  // The version that frame `seq` wrote; version 0: erased.
  void put(BytesView key, const Cell& cell, Seq seq);
  // Between begin() and end() rows are being brought up to `seq` and readers put nothing in, so that
  // no reader can leave an old version behind.
  void begin() { epoch_.fetch_add(1); }
  void end(Seq seq);
  void clear();

 private:
  static constexpr size_t kShards = 16;
  static constexpr size_t kEntryOverhead = 160;
  struct Entry {
    Cell cell{};
    size_t bytes = 0;
    Seq seq = 0;  // the frame that wrote it: it stays until the rows have that frame; 0 when read from them
    bool decoded = false;  // it is weighed with its decoded form
    const Key* key = nullptr;
    Entry *newer = nullptr, *older = nullptr;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Key, Entry, Hash, std::equal_to<>> by_key;
    Entry *newest = nullptr, *oldest = nullptr;  // by use
    size_t bytes = 0;
    std::deque<std::pair<Seq, Key>> erased;  // kept until the rows know, too

    void link(Entry& entry);    // as the newest
    void unlink(Entry& entry);
    void touch(Entry& entry);
  };
  Shard& shard(BytesView key) { return shards_[quick_shard(key)]; }
  static size_t quick_shard(BytesView key);
  static size_t weight(const Entry& entry);
  void insert(Shard& shard, BytesView key, const Cell& cell, Seq seq);
  void weigh(Shard& shard, Entry& entry);
  void evict(Shard& shard);
  void drop(Shard& shard, Entry& entry);

  const Rows& rows_;
  size_t shard_bytes_;
  std::atomic<uint64_t> epoch_{0};
  std::atomic<Seq> applied_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace pawl

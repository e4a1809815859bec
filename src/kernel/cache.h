#pragma once
// Hot cells, decoded where their program decoded them. Holds durable versions only and is bounded by
// bytes; what falls out is read again from the rows. A version that the rows do not have yet stays
// until they do, so a reader never sees an older one; that a cell was erased is forgotten then. Safe
// from any thread.

#include <atomic>
#include <deque>
#include <list>
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
    Key key;
    Cell cell;
    size_t bytes;
    Seq seq;  // the frame that wrote it: it stays until the rows have that frame; 0 when read from them
  };
  struct Hash {
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  struct Shard {
    std::mutex mutex;
    std::list<Entry> order;  // newest use first
    std::unordered_map<std::string_view, std::list<Entry>::iterator, Hash> by_key;
    size_t bytes = 0;
    std::deque<std::pair<Seq, Key>> erased;  // kept until the rows know, too
  };
  Shard& shard(BytesView key) { return shards_[quick_shard(key)]; }
  static size_t quick_shard(BytesView key);
  void insert(Shard& shard, BytesView key, const Cell& cell, Seq seq);
  void evict(Shard& shard);
  void drop(Shard& shard, std::list<Entry>::iterator entry);

  const Rows& rows_;
  size_t shard_bytes_;
  std::atomic<uint64_t> epoch_{0};
  std::atomic<Seq> applied_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace pawl

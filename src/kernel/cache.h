#pragma once
// Cells at hand, decoded where their program decoded them. Of each it knows the durable version, which
// everyone may read, and the newest, which the kernel has written and goes on from. Bounded by bytes;
// what falls out is read again from the rows. A version that the rows do not have yet stays until they
// do, so a reader never sees an older one; that a cell was erased is forgotten then. Safe from any
// thread.

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>

#include "kernel/cell.h"
#include "kernel/hash_index.h"
#include "storage/rows.h"

namespace pawl {

class CellCache {
 public:
  CellCache(const Rows& rows, size_t max_bytes);
  ~CellCache();
  CellCache(const CellCache&) = delete;
  CellCache& operator=(const CellCache&) = delete;

  // The newest durable version, absent cells as version 0 (absence is not cached).
  Result<Cell> read(BytesView key) { return find(key, false); }
  // The newest version, durable or not.
  Result<Cell> current(BytesView key) { return find(key, true); }
  // The kernel wrote this version in frame `seq`, over `before`, which is what current() gave.
  void stage(BytesView key, const Cell& before, const Cell& cell, Seq seq);
  // The version that frame `seq` wrote is durable; version 0: erased. `last`: the last frame of its group.
  void publish(BytesView key, const Cell& cell, Seq seq, Seq last);
  // Visits what is staged and not published, in no order.
  void each_staged(const std::function<void(BytesView key, const Cell&)>& visit);
  // Between begin() and end() rows are being brought up to `seq` and readers put nothing in, so that
  // no reader can leave an old version behind.
  void begin() { epoch_.fetch_add(1); }
  void end(Seq seq);
  // Forgets all, as a new start does; nothing may be staged or wait for the rows.
  void clear();

 private:
  static constexpr size_t kShards = 16;
  static constexpr size_t kEntryOverhead = 160, kDecodedOverhead = 768;
  struct Entry;
  struct Shard {
    std::mutex mutex;
    HashIndex<Entry> table;
    Entry *newest = nullptr, *oldest = nullptr;  // by use
    Entry* staged = nullptr;
    size_t bytes = 0;
    std::deque<std::pair<Seq, Entry*>> erased;  // kept until the rows know, too

    void link(Entry& entry);    // as the newest
    void unlink(Entry& entry);
    void touch(Entry& entry);
    void stage(Entry& entry);
    void unstage(Entry& entry);
  };
  uint64_t hash_of(BytesView key) const;
  Shard& shard(uint64_t hash) { return shards_[hash >> 60]; }
  Result<Cell> find(BytesView key, bool newest);
  Entry& insert(Shard& shard, uint64_t hash, BytesView key, const Cell& cell, Seq seq);
  void weigh(Shard& shard, Entry& entry);
  void evict(Shard& shard);
  void drop(Shard& shard, Entry& entry);

  const Rows& rows_;
  size_t shard_bytes_;
  uint64_t seed_;  // so that nobody can choose keys that meet
  std::atomic<uint64_t> epoch_{0};
  std::atomic<Seq> applied_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace pawl

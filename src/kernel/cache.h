#pragma once
// CellCache keeps recently used cells in memory. It holds two versions of each cell:
//   - the durable version, visible to all readers;
//   - the newest version, which the kernel has written but the journal may not hold yet.
//
// The cache is an LRU bounded by bytes. Cells of one family (for example, one workflow of one
// world) are also bounded by count. An evicted cell moves to PackedCells, a compact second tier;
// when it is evicted from there, the next read loads it from the rows.
//
// A cell that the rows do not hold yet is never evicted: otherwise a reader could load an older
// version. For the same reason an erased cell stays in the cache until the rows have erased it.
// Thread-safe.

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "kernel/cell.h"
#include "kernel/hash_index.h"
#include "kernel/lru_list.h"
#include "kernel/packed.h"
#include "storage/rows.h"

namespace pawl {

// Limits how many clean cells of one family stay in the cache. A cell is clean when the rows hold
// it.
struct FamilyLimit {
  size_t max_clean_cells = 0;  // 0: no limit
  // Returns the key prefix that names the cell's family, or an empty view if it has none.
  std::function<BytesView(BytesView key)> family_of{};
};

// The second tier.
struct Packing {
  size_t max_bytes = 0;  // in addition to the first tier; 0 disables packing
  std::function<bool(BytesView key)> is_worth_packing{};  // empty: every cell is
};

class CellCache {
 public:
  // A random `hash_seed` keeps callers from choosing keys that collide.
  CellCache(const Rows& rows, size_t max_bytes, FamilyLimit families = {}, Packing packing = {},
            uint64_t hash_seed = 0);
  ~CellCache();
  CellCache(const CellCache&) = delete;
  CellCache& operator=(const CellCache&) = delete;

  // Returns the newest durable version. An absent cell has version 0; absence is not cached.
  Result<Cell> read(BytesView key) { return find(key, false); }
  // Returns the newest version, durable or not.
  Result<Cell> current(BytesView key) { return find(key, true); }
  // Records the version that the kernel wrote in frame `seq`. `before` is what current() returned.
  void stage(BytesView key, const Cell& before, const Cell& cell, Seq seq);
  // Makes the version that frame `seq` wrote the durable one; version 0 means erased. `last` is the
  // last frame of its group.
  void publish(BytesView key, const Cell& cell, Seq seq, Seq last);
  // Visits the versions that are staged and not yet published, in no particular order.
  void each_staged(const std::function<void(BytesView key, const Cell&)>& visit);
  // Between begin() and end() the rows are being brought up to `seq`. Readers insert nothing into
  // the cache meanwhile, so that no reader can leave an outdated version behind.
  void begin() { epoch_.fetch_add(1); }
  void end(Seq seq);
  // Empties the cache. Nothing may be staged or wait for the rows.
  void clear();
  // Number of clean cells in families.
  size_t in_families() const;
  // Number of cells in the second tier.
  size_t packed();

 private:
  static constexpr size_t kShards = 16;
  static constexpr size_t kEntryOverhead = 184, kDecodedOverhead = 768;
  // The lists that an entry can be linked into: kUse (all entries, by last use), kStaged (versions
  // that are not durable), and kAside, which is either "waits for the rows" or "clean cell of a
  // family".
  enum Order : size_t { kUse, kStaged, kAside, kOrders };
  struct Entry;
  struct Family {
    Bytes name;
    uint64_t hash = 0;
    size_t count = 0;
    LruList<Entry, kAside> clean{};
    BytesView key() const { return name; }
  };
  struct Shard {
    std::mutex mutex;
    HashIndex<Entry> table;
    LruList<Entry, kUse> used;
    LruList<Entry, kStaged> staged;
    LruList<Entry, kAside> waiting;  // entries not yet applied to rows, in group order
    size_t bytes = 0;
    PackedCells packed{0};  // a cell is never in both tiers
  };
  uint64_t hash_of(BytesView key) const;
  Shard& shard(uint64_t hash) { return shards_[hash >> 60]; }
  Result<Cell> find(BytesView key, bool newest);
  Entry& insert(Shard& shard, uint64_t hash, BytesView key, const Cell& cell, Seq seq);
  void touch(Shard& shard, Entry& entry);
  void weigh(Shard& shard, Entry& entry);
  void evict(Shard& shard);
  void leave(Shard& shard, Entry& entry);
  void drop(Shard& shard, Entry& entry);
  void step_aside(Shard& shard, Entry& entry);
  void join_family(Entry& entry);
  void leave_family(Entry& entry);
  void trim_families();

  const Rows& rows_;
  size_t shard_bytes_;
  FamilyLimit limit_;
  std::function<bool(BytesView key)> is_worth_packing_;
  const uint64_t seed_;
  std::atomic<uint64_t> epoch_{0};
  std::atomic<Seq> applied_{0};
  std::array<Shard, kShards> shards_;

  mutable std::mutex families_mutex_;  // locked after a shard's mutex, never before
  HashIndex<Family> families_;         // families with clean cells
  std::vector<Family*> crowded_;       // families over their limit
  size_t in_families_ = 0;
};

}  // namespace pawl

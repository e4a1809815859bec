#pragma once
// Cells at hand, decoded where their program decoded them. Of each it knows the durable version,
// which everyone may read, and the newest, which the kernel has written and goes on from. Bounded
// by bytes, and by number within a family of cells; what falls out is packed, and read again from
// the rows when it has left there too. A version that the rows do not have yet stays until they do,
// so a reader never sees an older one; that a cell was erased is forgotten then. Safe from any
// thread.

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

// Of the cells of one family at most `most` stay that are clean, that is, that the rows have as
// well; who was not used for longest leaves first. 0: no such limit.
struct FamilyLimit {
  size_t max = 0;
  std::function<BytesView(BytesView key)>
      of{};  // the lead of the key that names its family; empty: of none
};

struct Packing {
  size_t max_bytes = 0;  // beside those of the cells at hand; 0: nothing is packed
  std::function<bool(BytesView key)> not_worth{};  // true: nobody will want it soon
};

class CellCache {
 public:
  CellCache(const Rows& rows, size_t max_bytes, FamilyLimit families = {}, Packing packing = {});
  ~CellCache();
  CellCache(const CellCache&) = delete;
  CellCache& operator=(const CellCache&) = delete;

  // The newest durable version, absent cells as version 0 (absence is not cached).
  Result<Cell> read(BytesView key) { return find(key, false); }
  // The newest version, durable or not.
  Result<Cell> current(BytesView key) { return find(key, true); }
  // The kernel wrote this version in frame `seq`, over `before`, which is what current() gave.
  void stage(BytesView key, const Cell& before, const Cell& cell, Seq seq);
  // The version that frame `seq` wrote is durable; version 0: erased. `last`: the last frame of its
  // group.
  void publish(BytesView key, const Cell& cell, Seq seq, Seq last);
  // Visits what is staged and not published, in no order.
  void each_staged(const std::function<void(BytesView key, const Cell&)>& visit);
  // Between begin() and end() rows are being brought up to `seq` and readers put nothing in, so
  // that no reader can leave an old version behind.
  void begin() { epoch_.fetch_add(1); }
  void end(Seq seq);
  // Forgets all, as a new start does; nothing may be staged or wait for the rows.
  void clear();
  // Clean cells of all families, at hand.
  size_t in_families() const;
  size_t packed();

 private:
  static constexpr size_t kShards = 16;
  static constexpr size_t kEntryOverhead = 184, kDecodedOverhead = 768;
  // The orders that an entry stands in: all by use; what is staged; and aside, which is either what
  // waits for the rows or, of a family, what is clean.
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
    LruList<Entry, kAside>
        waiting;  // for the rows, in the order of their groups: whoever must be seen to then
    size_t bytes = 0;
    PackedCells packed{0};  // never one that is at hand
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
  std::function<bool(BytesView key)> not_worth_packing_;
  uint64_t seed_;  // so that nobody can choose keys that meet
  std::atomic<uint64_t> epoch_{0};
  std::atomic<Seq> applied_{0};
  std::array<Shard, kShards> shards_;

  mutable std::mutex families_mutex_;  // taken after a shard's
  HashIndex<Family> families_;         // those with clean cells
  std::vector<Family*> crowded_;       // with more than they may have
  size_t in_families_ = 0;
};

}  // namespace pawl

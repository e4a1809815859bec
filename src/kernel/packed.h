#pragma once
// Cells as bytes, end to end: a second and tighter memory for those that have left the first. A
// cell here takes its key, its bytes and some 50 more, a third of what one at hand takes. Whoever
// came first leaves first; whoever is wanted is taken out, and comes back as the newest. Not safe
// from several threads.

#include <deque>
#include <memory>
#include <vector>

#include "kernel/cell.h"
#include "kernel/hash_index.h"

namespace pawl {

class PackedCells {
 public:
  // Memory is taken as it is needed. Less than kLeast: none is.
  explicit PackedCells(size_t max_bytes);
  // No cell with this key may be in it. One that is too large is not taken.
  void put(uint64_t hash, BytesView key, const Cell& cell);
  // Out of it; version 0 when it is not there.
  Cell take(uint64_t hash, BytesView key);
  void erase(uint64_t hash, BytesView key);
  void clear();
  size_t count() const { return count_; }

  static constexpr size_t kBlock = 64u << 10, kLeast = 8 * kBlock, kMax = kBlock / 4;

 private:
  // Its key and its bytes behind it.
  struct Record {
    uint64_t hash;
    Seq version;  // 0: nobody wants it any more
    uint32_t key_size, value_size;
    BytesView key() const { return {reinterpret_cast<const char*>(this + 1), key_size}; }
    BytesView value() const {
      return {reinterpret_cast<const char*>(this + 1) + key_size, value_size};
    }
    size_t size() const { return size_of(key_size, value_size); }
    static size_t size_of(size_t key, size_t value) {
      return (sizeof(Record) + key + value + 7) & ~size_t{7};
    }
  };
  struct Block {
    std::unique_ptr<char[]> bytes = std::make_unique_for_overwrite<char[]>(kBlock);
    size_t used = 0;
  };
  Record* room_for(size_t size);
  void forget(Record& record);
  void make_room();
  void tidy_oldest(bool keep);

  size_t most_blocks_;
  std::deque<Block> blocks_;  // the newest, to which is written, at the end
  std::vector<Block> free_;
  HashIndex<Record> index_;
  size_t count_ = 0;
  size_t live_ = 0;  // bytes of records that are wanted
};

}  // namespace pawl

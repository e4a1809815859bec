#pragma once
// PackedCells is the compact second tier of the cell cache. Cells are stored end to end in blocks:
// a cell costs its key, its bytes and about 50 bytes more, a third of an entry in the first tier.
// Eviction is first in, first out; a cell that is needed is taken out and returns as the newest.
// Not thread-safe.

#include <deque>
#include <memory>
#include <vector>

#include "kernel/cell.h"
#include "kernel/hash_index.h"

namespace pawl {

class PackedCells {
 public:
  // Memory is allocated as it is needed. With less than kLeast nothing is stored.
  explicit PackedCells(size_t max_bytes);
  // Stores a cell. No cell with this key may be stored already. A cell over kMax bytes is not
  // stored.
  void put(uint64_t hash, BytesView key, const Cell& cell);
  // Removes and returns the cell; version 0 when it is not stored.
  Cell take(uint64_t hash, BytesView key);
  void erase(uint64_t hash, BytesView key);
  void clear();
  size_t count() const { return count_; }

  static constexpr size_t kBlock = 64u << 10, kLeast = 8 * kBlock, kMax = kBlock / 4;

 private:
  // A record's key and value follow it in the block.
  struct Record {
    uint64_t hash;
    Seq version;  // 0: erased
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
  std::deque<Block> blocks_;  // oldest first; writes go to the last one
  std::vector<Block> free_;
  HashIndex<Record> index_;
  size_t count_ = 0;
  size_t live_ = 0;  // bytes of records that are not erased
};

}  // namespace pawl

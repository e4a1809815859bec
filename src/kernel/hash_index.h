#pragma once
// HashIndex is a hash table of pointers with linear probing. It does not own the items; an item
// must not move while it is in the table.

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace pawl {

// T has `hash` and `key()`.
template <class T>
class HashIndex {
 public:
  T* find(uint64_t hash, BytesView key) const {
    if (slots_.empty()) return nullptr;
    for (size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (!slot.thing) return nullptr;
      if (slot.hash == hash && slot.thing->key() == key) return slot.thing;
    }
  }
  // No item with this key may be in the table.
  void insert(T* thing) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    size_t at = thing->hash & mask();
    while (slots_[at].thing)
      at = (at + 1) & mask();
    slots_[at] = {thing->hash, thing};
    ++count_;
  }
  void erase(const T* thing) {
    size_t hole = thing->hash & mask();
    while (slots_[hole].thing != thing)
      hole = (hole + 1) & mask();
    // Items after the hole that could not be found across it move into it.
    for (size_t at = (hole + 1) & mask(); slots_[at].thing; at = (at + 1) & mask()) {
      if (((at - slots_[at].hash) & mask()) < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].thing = nullptr;
    --count_;
  }
  // Keeps the table's memory.
  void clear() {
    if (count_) std::fill(slots_.begin(), slots_.end(), Slot{});
    count_ = 0;
  }
  template <class F>
  void each(F&& visit) const {
    for (const Slot& slot : slots_)
      if (slot.thing) visit(slot.thing);
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    T* thing = nullptr;
  };
  size_t mask() const { return slots_.size() - 1; }
  void grow() {
    std::vector<Slot> old(std::max<size_t>(64, slots_.size() * 2));
    old.swap(slots_);
    count_ = 0;
    for (const Slot& slot : old)
      if (slot.thing) insert(slot.thing);
  }
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace pawl

#pragma once
// Things by the hash of their keys, in one flat table: open places, one after the other. It points
// at them and owns nothing; one that is in it must not move.

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace pawl {

// T has `hash` and `key()`.
template <class T>
class HashIndex {
 public:
  T* find(uint64_t hash, BytesView key) const {
    if (places_.empty()) return nullptr;
    for (size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Place& place = places_[at];
      if (!place.thing) return nullptr;
      if (place.hash == hash && place.thing->key() == key) return place.thing;
    }
  }
  // Nothing with this key may be in it.
  void insert(T* thing) {
    if ((count_ + 1) * 4 > places_.size() * 3) grow();
    size_t at = thing->hash & mask();
    while (places_[at].thing)
      at = (at + 1) & mask();
    places_[at] = {thing->hash, thing};
    ++count_;
  }
  void erase(const T* thing) {
    size_t hole = thing->hash & mask();
    while (places_[hole].thing != thing)
      hole = (hole + 1) & mask();
    // Whoever stands behind and would not be found across the hole moves into it.
    for (size_t at = (hole + 1) & mask(); places_[at].thing; at = (at + 1) & mask()) {
      if (((at - places_[at].hash) & mask()) < ((at - hole) & mask())) continue;
      places_[hole] = places_[at];
      hole = at;
    }
    places_[hole].thing = nullptr;
    --count_;
  }
  // Keeps its room.
  void clear() {
    if (count_) std::fill(places_.begin(), places_.end(), Place{});
    count_ = 0;
  }
  template <class F>
  void each(F&& visit) const {
    for (const Place& place : places_)
      if (place.thing) visit(place.thing);
  }

 private:
  struct Place {
    uint64_t hash = 0;
    T* thing = nullptr;
  };
  size_t mask() const { return places_.size() - 1; }
  void grow() {
    std::vector<Place> old(std::max<size_t>(64, places_.size() * 2));
    old.swap(places_);
    count_ = 0;
    for (const Place& place : old)
      if (place.thing) insert(place.thing);
  }
  std::vector<Place> places_;
  size_t count_ = 0;
};

}  // namespace pawl

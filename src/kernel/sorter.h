#pragma once
// Puts changes into key order, each key once: rows take them faster.

#include <span>
#include <vector>

#include "storage/rows.h"

namespace pawl {

// Keeps its memory for the next batch.
class Sorter {
 public:
  // The changes lie in the batch.
  const RowChanges& in_order(const RowBatch& batch);

 private:
  // Eight bytes of a row's key, those after what its neighbours share: comparing two rarely has to
  // look at the keys, which lie all over the batch.
  struct Place {
    uint64_t head;
    uint32_t row;
    bool again;  // the key of the place before
  };
  void sort(std::span<Place> places, size_t depth);
  void sort_plainly(std::span<Place> places);
  void sort_by_head(std::span<Place> places);
  size_t shared(std::span<const Place> places, size_t depth) const;
  BytesView key(const Place& place) const { return rows_[place.row].key; }

  std::vector<RowChange> rows_;
  std::vector<Place> order_, aside_;
  RowChanges out_;
};

}  // namespace pawl

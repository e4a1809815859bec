#pragma once
// Sorts row changes by key and keeps only the last change of each key. RocksDB inserts sorted
// changes faster.

#include <span>
#include <vector>

#include "storage/rows.h"

namespace pawl {

// A Sorter keeps its memory for the next batch.
class Sorter {
 public:
  // The result points into the batch.
  const RowChanges& in_order(const RowBatch& batch);

 private:
  // One row with eight bytes of its key, taken after the prefix that all compared keys share. Most
  // comparisons need only these bytes and do not touch the keys, which are spread over the batch.
  struct SortItem {
    uint64_t head;
    uint32_t row;
    bool again;  // same key as the item before
  };
  void sort(std::span<SortItem> places, size_t depth);
  void sort_plainly(std::span<SortItem> places);
  void sort_by_head(std::span<SortItem> places);
  size_t shared(std::span<const SortItem> places, size_t depth) const;
  BytesView key(const SortItem& place) const { return rows_[place.row].key; }

  std::vector<RowChange> rows_;
  std::vector<SortItem> order_, aside_;
  RowChanges out_;
};

}  // namespace pawl

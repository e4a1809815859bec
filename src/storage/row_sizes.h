#pragma once
// Rows that can tell how large a range of them is without reading it. The embedded rows can.

#include "base/bytes.h"

namespace pawl {

class RowSizes {
 public:
  // About how many bytes the rows with keys in [first, limit) take on the disk. Rows that are not
  // flushed yet are not counted.
  virtual uint64_t approximate_bytes(BytesView first, BytesView limit) const = 0;

 protected:
  ~RowSizes() = default;
};

}  // namespace pawl

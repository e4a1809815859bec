#pragma once
// The entries of one append as the bytes of one row: a version, the count, the sizes, the entries,
// and a checksum over all of it (docs/formats/postgres.md).

#include <span>
#include <vector>

#include "base/bytes.h"

namespace pawl::postgres {

void pack_group(std::span<const BytesView> entries, Bytes& out);  // replaces `out`
// The entries point into `group`. Fails with JOURNAL_CORRUPT.
Result<std::vector<BytesView>> unpack_group(BytesView group);

}  // namespace pawl::postgres

#pragma once
// A compressed segment holds a closed segment in chunks, so that any byte can be read by
// decompressing one chunk. Offsets are those of the plain segment.

#include <memory>
#include <string>

#include "storage/file/segment.h"

namespace pawl {

// Compresses the first `end` bytes of `plain` into folder/name and returns the size of that file.
// After a crash the file is complete or does not exist.
Result<uint64_t> write_compressed(Disk& disk, SegmentReader& plain, uint64_t end,
                                  const std::string& folder, const std::string& name);

// Fails with `not_found` when there is no such file, and with `corrupt` when its chunk table is
// damaged.
// The disk must outlive the reader.
Result<std::unique_ptr<SegmentReader>> open_compressed(Disk& disk, const std::string& path,
                                                       Seq first);

}  // namespace pawl

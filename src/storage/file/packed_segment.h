#pragma once
// A closed segment, compressed in chunks: any byte of it can be had by unpacking one chunk. Its
// offsets are those of the plain segment.

#include <memory>
#include <string>

#include "storage/file/segment.h"

namespace pawl {

// Writes the first `end` bytes of `plain`, packed, as folder/name; after a crash it is whole or not
// there. Gives its size.
Result<uint64_t> write_packed(Disk& disk, SegmentBytes& plain, uint64_t end,
                              const std::string& folder, const std::string& name);

// `not_found` when there is no such file; `corrupt` when its table does not check.
Result<std::unique_ptr<SegmentBytes>> open_packed(const std::string& path, Seq first);

}  // namespace pawl

#pragma once
// A pack is the files of one folder in one file, with a label and a checksum. See
// docs/formats/checkpoint.md.

#include <string>

#include "base/bytes.h"

namespace pawl {

// Writes a new file `to`. Subfolders are packed as well.
Result<void> pack_files(const std::string& folder, BytesView label, const std::string& to);
// Makes the folder, puts the files there and returns the label. When the pack is damaged, it fails
// with CHECKPOINT_DAMAGED and the folder is removed.
Result<Bytes> unpack_files(const std::string& pack, const std::string& folder);

}  // namespace pawl

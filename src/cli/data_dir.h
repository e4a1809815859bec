#pragma once
// Copies data folders, for backup and restore.
//
// A backup is complete when its file MANIFEST is there: the copy writes it last. It holds the last
// frame and the link of that frame. Each link covers the frame before it, so a backup that lacks a
// frame, or holds another one, does not have this link. With several shards each has a MANIFEST in
// its folder.

#include <optional>

#include "kernel/verify.h"
#include "storage/data_folder.h"

namespace pawl::cli {

struct Manifest {
  Seq last = 0;
  uint64_t bytes = 0;  // of all frames
  Digest link{};       // of the last frame
};

// What was copied, of all shards.
struct Copied {
  uint64_t last = 0;  // frames
  uint64_t bytes = 0;
};
// Copies the journals of all shards into a new folder that `pawl serve` can open. The server
// rebuilds the rows from them. Every link is checked on the way.
Result<Copied> copy_journals(const std::vector<const Journal*>& from, const std::string& data,
                             const Progress& progress);

// Of the folder of a shard. Nothing when it has no MANIFEST.
Result<std::optional<Manifest>> read_manifest(const std::string& folder);
// Checks that the journal holds the frames of the manifest. A server may have added more.
Result<void> check_manifest(const Journal& journal, const Manifest& manifest);

}  // namespace pawl::cli

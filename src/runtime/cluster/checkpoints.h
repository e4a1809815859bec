#pragma once
// Checkpoints of the rows of one shard in an archive, so that a new node needs no replay of years,
// and so that the journal may be trimmed. A checkpoint is one file of the archive; its format is in
// docs/formats/checkpoint.md. Its name carries the frame that it holds at least:
// "0003/checkpoint-00000000000000001200".

#include <optional>

#include "base/hash.h"
#include "runtime/shard.h"
#include "storage/archive.h"

namespace pawl {

struct Checkpoint {
  std::string name;  // in the archive
  Seq seq = 0;       // the rows hold the frames up to this one at least
  Digest link{};     // of that frame; set by store() and fetch()
};

class Checkpoints {
 public:
  // `work` is a folder for temporary files. The archive must outlive this object.
  Checkpoints(Archive& archive, uint32_t shard, std::string work);

  // Writes a checkpoint of the shard to the archive. Empty: the archive has one of this frame.
  Result<std::optional<Checkpoint>> store(Shard& shard);
  // All checkpoints of the shard, the oldest first.
  Result<std::vector<Checkpoint>> list() const;
  // Puts the files of the checkpoint into a new folder, which open_rows() can open. Fails with
  // CHECKPOINT_DAMAGED when the bytes are not those that were stored.
  Result<Checkpoint> fetch(const Checkpoint& checkpoint, const std::string& folder) const;
  // Fetches the newest one. Empty: there is none, and the folder was not made.
  Result<std::optional<Checkpoint>> fetch_newest(const std::string& folder) const;

  // Removes all but the newest `keep` (at least one) checkpoints, and then trims the journal of the
  // shard below the oldest one that is left. A follower that is not far behind finds what it needs.
  Result<void> retire(Shard& shard, size_t keep);

 private:
  std::string prefix() const;
  Archive& archive_;
  const uint32_t shard_;
  const std::string work_;
};

}  // namespace pawl

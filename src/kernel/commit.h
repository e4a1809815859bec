#pragma once
// The committer makes groups durable: one append for all frames at hand, then rows and cache, and
// only then replies, effects and watchers. It owns no thread; one thread at a time drives it.

#include "kernel/group.h"
#include "kernel/kernel.h"
#include "storage/journal.h"

namespace pawl {

// Seconds that each stage took, for metrics.
struct CommitTimes {
  double append = 0, apply = 0;
  size_t frames = 0, bytes = 0;
};

class Committer {
 public:
  // `link` is the chain's newest link (zeros when the journal is empty).
  Committer(Journal& journal, Rows& rows, CellCache& cache, Digest link)
      : journal_(journal), rows_(rows), cache_(cache), link_(link) {}

  // Appends the frames of the groups, in order, with one flush. After a failure nothing of them may
  // leave and the shard must stop: what is on the disk is unknown until it is opened again.
  Result<void> append(std::span<Group> groups);
  // Makes the groups' rows visible. Only after append.
  Result<void> apply(std::span<Group> groups);

  const Digest& link() const { return link_; }

 private:
  Journal& journal_;
  Rows& rows_;
  CellCache& cache_;
  Digest link_;
  std::vector<Bytes> entries_;
};

// Answers every waiting caller of the group with an error: the append failed.
void refuse_all(std::span<Group> groups, const Error& why);

}  // namespace pawl

#pragma once
// The committer makes groups durable: one append for all frames at hand, then the cells are
// visible, and only then replies, effects and watchers. Rows follow a little later, in larger
// batches. It owns no thread; one thread at a time appends and publishes.

#include <atomic>
#include <mutex>

#include "kernel/group.h"
#include "kernel/kernel.h"
#include "kernel/sorter.h"
#include "storage/journal.h"

namespace pawl {

// Seconds that each stage took, for metrics.
struct CommitTimes {
  double append = 0, apply = 0;
  size_t frames = 0, bytes = 0, answers = 0;
};

class Committer {
 public:
  // `link` is the chain's newest link (zeros when the journal is empty).
  Committer(Journal& journal, Rows& rows, CellCache& cache, Digest link)
      : journal_(journal), rows_(rows), cache_(cache), link_(link), published_(rows.applied()) {}

  // Appends the frames of the groups, in order, with one flush. After a failure nothing of them may
  // leave and the shard must stop: what is on the disk is unknown until it is opened again.
  Result<void> append(std::span<Group> groups);
  // Makes the groups' cells visible to reads by key. Only after append.
  void publish(std::span<Group> groups);
  // Brings the rows up to all that is published. Later is cheaper: of several changes to one row
  // only the last is written. Scans want it first. Safe from any thread.
  Result<void> apply();

  Seq published() const { return published_.load(std::memory_order_acquire); }
  size_t waiting_bytes() const { return waiting_bytes_.load(std::memory_order_relaxed); }
  const Digest& link() const { return link_; }

 private:
  Journal& journal_;
  Rows& rows_;
  CellCache& cache_;
  Digest link_;
  std::vector<BytesView> entries_;

  std::mutex applying_;  // one apply at a time
  Sorter sorter_;
  RowBatch taken_;  // what is being applied; its memory is the next tail's
  std::mutex tail_mutex_;
  RowBatch tail_;  // published, not yet in the rows
  std::atomic<Seq> published_;
  std::atomic<size_t> waiting_bytes_{0};
};

// Answers every waiting caller of the group with an error: the append failed.
void refuse_all(std::span<Group> groups, const Error& why);

}  // namespace pawl

#pragma once
// The committer makes groups durable. It appends all finished frames with one flush, then makes
// their cells visible; replies, effects and watchers come after that. Rows are brought up later, in
// larger batches. The committer owns no thread; one thread at a time may append and publish.

#include <atomic>
#include <mutex>

#include "kernel/group.h"
#include "kernel/kernel.h"
#include "kernel/sorter.h"
#include "storage/journal.h"

namespace pawl {

// Duration of each stage in seconds, for metrics.
struct CommitTimes {
  double append = 0, apply = 0;
  size_t frames = 0, bytes = 0, answers = 0;
};

class Committer {
 public:
  // `link` is the newest link of the journal's hash chain (zeros when the journal is empty).
  Committer(Journal& journal, Rows& rows, CellCache& cache, Digest link)
      : journal_(journal), rows_(rows), cache_(cache), link_(link), published_(rows.applied()) {}

  // Appends the frames of the groups, in order, with one flush. After a failure no reply or effect
  // of these groups may leave, and the shard must stop: what the disk holds is unknown until the
  // journal is opened again.
  Result<void> append(std::span<Group> groups);
  // Makes the groups' cells visible to reads by key. Only after append.
  void publish(std::span<Group> groups);
  // Applies everything published to the rows. Waiting makes it cheaper, because of several changes
  // to one row only the last is written. Scans call it first. Thread-safe.
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
  RowBatch taken_;  // the batch being applied; its memory becomes the next tail
  std::mutex tail_mutex_;
  RowBatch tail_;            // published changes that are not in the rows yet
  Digest published_link_{};  // of the last published frame
  std::atomic<Seq> published_;
  std::atomic<size_t> waiting_bytes_{0};
};

// Answers every waiting caller of the group with an error: the append failed.
void refuse_all(std::span<Group> groups, const Error& why);

}  // namespace pawl

#include "kernel/commit.h"

#include "kernel/rows_layout.h"

namespace pawl {

// Twice the size at which the shard applies the tail.
static constexpr size_t kKeptBytes = 32u << 20;

Result<void> Committer::append(std::span<Group> groups) {
  entries_.clear();
  Seq expected = 0;
  for (Group& group : groups) {
    if (group.frames.empty()) continue;
    if (entries_.empty()) expected = group.last_before;
    CHECK(expected + entries_.size() == group.last_before);
    for (Bytes& entry : group.entries) {
      seal(entry, link_);
      link_ = sha256(entry, {});
      entries_.push_back(entry);
    }
  }
  if (entries_.empty()) return {};
  return journal_.append(entries_, expected);
}

void Committer::publish(std::span<Group> groups) {
  Seq last = 0;
  for (Group& group : groups)
    if (!group.frames.empty()) last = group.last();
  if (!last) return;
  {
    // Rows first: a cell that is no longer staged must be in the tail before a scan can start.
    std::lock_guard lock(tail_mutex_);
    for (Group& group : groups)
      tail_.append(group.rows);
    published_.store(last, std::memory_order_release);
    published_link_ = link_;
    waiting_bytes_.store(tail_.bytes(), std::memory_order_relaxed);
  }
  for (Group& group : groups)
    group.each_cell([&](BytesView key, const Cell& cell, Seq seq) {
      cache_.publish(key, cell, seq, group.last());
    });
}

Result<void> Committer::apply() {
  std::lock_guard applying(applying_);
  Seq last;
  {
    std::lock_guard lock(tail_mutex_);
    if (taken_.empty()) {
      if (tail_.empty()) return {};
      std::swap(taken_, tail_);
    } else {
      // The apply before this one failed. Its batch stays in front: without it the rows would claim
      // to hold frames that they do not hold.
      taken_.append(tail_);
      tail_.clear();
    }
    last = published_.load();
    taken_.put(layout::kLink, layout::link_value(last, published_link_));
    waiting_bytes_.store(0, std::memory_order_relaxed);
  }
  const RowChanges& sorted = sorter_.in_order(taken_);
  cache_.begin();
  Result<void> done = rows_.apply_changes(sorted, last);
  cache_.end(done ? last : rows_.applied());
  if (!done) return done;
  // The two batches swap their memory: a tail grows to megabytes quickly, and fresh memory would
  // fault in every page again.
  if (taken_.bytes() > kKeptBytes) taken_ = {};
  taken_.clear();
  return done;
}

void refuse_all(std::span<Group> groups, const Error& why) {
  for (Group& group : groups) {
    for (auto& [reply, answer] : group.answers)
      reply(fail(why));
    group.answers.clear();
  }
}

}  // namespace pawl

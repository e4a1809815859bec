#include "kernel/commit.h"

namespace pawl {

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
    // First the rows: what is not staged any more must be there for whoever scans.
    std::lock_guard lock(tail_mutex_);
    for (Group& group : groups) tail_.append(group.rows);
    published_.store(last, std::memory_order_release);
    waiting_bytes_.store(tail_.bytes(), std::memory_order_relaxed);
  }
  for (Group& group : groups) group.each_cell([&](BytesView key, const Cell& cell, Seq seq) { cache_.publish(key, cell, seq, group.last()); });
}

Result<void> Committer::apply() {
  std::lock_guard applying(applying_);
  RowBatch batch;
  Seq last;
  {
    std::lock_guard lock(tail_mutex_);
    if (tail_.empty()) return {};
    std::swap(batch, tail_);
    last = published_.load();
    waiting_bytes_.store(0, std::memory_order_relaxed);
  }
  const RowBatch& sorted = sorter_.in_order(batch);
  cache_.begin();
  Result<void> done = rows_.apply(sorted, last);
  cache_.end(done ? last : rows_.applied());
  return done;
}

const RowBatch& Sorter::in_order(const RowBatch& batch) {
  using Kind = RowBatch::Kind;
  rows_.clear();
  order_.clear();
  out_.clear();
  rows_.reserve(batch.count());
  order_.reserve(batch.count());
  batch.each_change([&](Kind kind, BytesView key, BytesView value) {
    Place place{{}, static_cast<uint32_t>(rows_.size())};
    std::memcpy(place.head, key.data(), std::min(key.size(), sizeof place.head));
    for (uint64_t& word : place.head) word = __builtin_bswap64(word);
    order_.push_back(place);
    rows_.push_back({key, value, kind});
  });
  // Of equal keys the earlier change comes first.
  std::sort(order_.begin(), order_.end(), [&](const Place& a, const Place& b) {
    for (size_t i = 0; i < std::size(a.head); ++i)
      if (a.head[i] != b.head[i]) return a.head[i] < b.head[i];
    int by_key = rows_[a.row].key.compare(rows_[b.row].key);
    return by_key ? by_key < 0 : a.row < b.row;
  });
  for (size_t i = 0; i < order_.size();) {
    const Row& first = rows_[order_[i].row];
    size_t last = i;
    while (last + 1 < order_.size() && rows_[order_[last + 1].row].key == first.key) ++last;
    const Row& row = rows_[order_[last].row];
    if (row.kind != Kind::erase) out_.put(row.key, row.value);
    else if (first.kind != Kind::put_new) out_.erase(row.key);
    i = last + 1;
  }
  return out_;
}

void refuse_all(std::span<Group> groups, const Error& why) {
  for (Group& group : groups) {
    for (auto& [reply, answer] : group.answers) reply(fail(why));
    group.answers.clear();
  }
}

}  // namespace pawl

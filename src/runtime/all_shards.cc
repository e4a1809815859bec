#include "runtime/all_shards.h"

#include <algorithm>
#include <deque>

#include "kernel/effect.h"

namespace pawl {
namespace {

// Rows that are read ahead of one shard. The first read is short: most lists end early.
constexpr size_t kFirstRead = 32;
constexpr size_t kLargestRead = 1024;

using MergedRow = std::pair<Bytes, Bytes>;

// The rows of one shard in [first, limit), in either direction, a few at a time.
class ShardRows {
 public:
  ShardRows(const RowsSnapshot& rows, BytesView first, BytesView limit, bool back)
      : rows_(rows), first_(first), limit_(limit), back_(back) {}

  // The next row; null at the end.
  Result<const MergedRow*> peek() {
    if (ahead_.empty() && !ended_) TRY_OK(read());
    return ahead_.empty() ? nullptr : &ahead_.front();
  }
  void pop() { ahead_.pop_front(); }

 private:
  Result<void> read() {
    auto visit = [this](BytesView key, BytesView value) {
      ahead_.emplace_back(key, value);
      return ahead_.size() < count_;
    };
    TRY_OK(back_ ? rows_.scan_back(first_, limit_, visit) : rows_.scan(first_, limit_, visit));
    ended_ = ahead_.size() < count_;
    count_ = std::min(count_ * 2, kLargestRead);
    if (ahead_.empty()) return {};
    // The next read goes on behind the last row of this one.
    if (back_)
      limit_ = ahead_.back().first;
    else
      first_ = ahead_.back().first + '\0';
    return {};
  }

  const RowsSnapshot& rows_;
  Bytes first_, limit_;
  const bool back_;
  size_t count_ = kFirstRead;
  bool ended_ = false;
  std::deque<MergedRow> ahead_;
};

class MergedRows final : public RowsSnapshot {
 public:
  explicit MergedRows(std::vector<std::unique_ptr<RowsSnapshot>> parts)
      : parts_(std::move(parts)) {}

  Result<std::optional<Bytes>> get(BytesView key) const override {
    for (const auto& part : parts_) {
      TRY(auto found, part->get(key));
      if (found) return found;
    }
    return std::optional<Bytes>();
  }
  Result<void> scan(BytesView first, BytesView limit, const Visit& visit) const override {
    return merge(first, limit, false, visit);
  }
  Result<void> scan_back(BytesView first, BytesView limit, const Visit& visit) const override {
    return merge(first, limit, true, visit);
  }
  Seq applied() const override {
    Seq sum = 0;
    for (const auto& part : parts_)
      sum += part->applied();
    return sum;
  }

 private:
  // A key that several shards have is a copy: it is visited once.
  Result<void> merge(BytesView first, BytesView limit, bool back, const Visit& visit) const {
    std::deque<ShardRows> parts;
    for (const auto& part : parts_)
      parts.emplace_back(*part, first, limit, back);
    while (true) {
      const MergedRow* next = nullptr;
      for (ShardRows& part : parts) {
        TRY(const MergedRow* row, part.peek());
        if (row && (!next || (back ? row->first > next->first : row->first < next->first)))
          next = row;
      }
      if (!next) return {};
      const MergedRow taken = *next;
      for (ShardRows& part : parts) {
        TRY(const MergedRow* row, part.peek());
        if (row && row->first == taken.first) part.pop();
      }
      if (!visit(taken.first, taken.second)) return {};
    }
  }

  const std::vector<std::unique_ptr<RowsSnapshot>> parts_;
};

}  // namespace

std::unique_ptr<RowsSnapshot> merged_rows(std::vector<std::unique_ptr<RowsSnapshot>> parts) {
  return std::make_unique<MergedRows>(std::move(parts));
}

std::string_view tenant_in(BytesView key) {
  auto part = [&key] {
    const BytesView out = key.substr(0, key.find('\0'));
    key.remove_prefix(std::min(key.size(), out.size() + 1));
    return out;
  };
  part();  // the program
  const BytesView second = part();
  return second.starts_with('~') ? part() : second;
}

void AllShards::submit(Input input, Reply reply) {
  Shard& shard = shards_[shards_.home(input.caller.tenant)];
  shard.submit(std::move(input), std::move(reply));
}

Result<Cell> AllShards::read(BytesView key) const {
  if (!key.starts_with(kEffectPrefix)) return shards_[shards_.home(tenant_in(key))].read(key);
  for (const auto& shard : shards_) {
    TRY(Cell cell, shard->read(key));
    if (cell.exists()) return cell;
  }
  return Cell{};
}

ReadSnapshot AllShards::snapshot() const {
  std::vector<std::unique_ptr<RowsSnapshot>> parts;
  parts.reserve(shards_.size());
  for (uint32_t shard = 0; shard < shards_.size(); ++shard)
    parts.push_back(shards_.rows_snapshot(shard));
  return ReadSnapshot(merged_rows(std::move(parts)));
}

Result<void> AllShards::frames(Seq from,
                               const std::function<Result<bool>(const Frame&)>& visit) const {
  for (const auto& shard : shards_)
    TRY_OK(shard->frames(from, visit));
  return {};
}

uint64_t AllShards::watch(Watcher watcher) {
  std::vector<uint64_t> ids;
  ids.reserve(shards_.size());
  for (const auto& shard : shards_)
    ids.push_back(shard->watch(watcher));
  std::lock_guard lock(mutex_);
  watches_.emplace(next_, std::move(ids));
  return next_++;
}

void AllShards::unwatch(uint64_t id) {
  std::vector<uint64_t> ids;
  {
    std::lock_guard lock(mutex_);
    auto found = watches_.extract(id);
    if (!found) return;
    ids = std::move(found.mapped());
  }
  for (uint32_t shard = 0; shard < ids.size(); ++shard)
    shards_[shard].unwatch(ids[shard]);
}

}  // namespace pawl

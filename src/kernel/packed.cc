#include "kernel/packed.h"

#include <cstring>

namespace pawl {

namespace {
// Index memory of one cell: one and a half slots of 16 bytes on average.
constexpr size_t kIndexShare = 10;
// Share of the memory that live records may fill. Blocks with erased records are compacted to keep
// below it.
constexpr size_t kFull = 5, kFullOf = 6;
// Blocks compacted to gain one free block before the oldest block is evicted instead.
constexpr int kPatience = 16;
}  // namespace

PackedCells::PackedCells(size_t max_bytes)
    : most_blocks_(max_bytes < kLeast ? 0 : (max_bytes - max_bytes / kIndexShare) / kBlock) {}

void PackedCells::put(uint64_t hash, BytesView key, const Cell& cell) {
  const BytesView value = cell.value();
  const size_t size = Record::size_of(key.size(), value.size());
  if (most_blocks_ == 0 || size > kMax) return;
  if (blocks_.empty() || kBlock - blocks_.back().used < size) make_room();
  Record* record = room_for(size);
  *record = {hash, cell.version, static_cast<uint32_t>(key.size()),
             static_cast<uint32_t>(value.size())};
  char* to = reinterpret_cast<char*>(record + 1);
  std::memcpy(to, key.data(), key.size());
  std::memcpy(to + key.size(), value.data(), value.size());
  index_.insert(record);
  ++count_;
  live_ += size;
}

Cell PackedCells::take(uint64_t hash, BytesView key) {
  Record* record = index_.find(hash, key);
  if (!record) return {};
  Cell out{record->version, std::make_shared<const Stored>(Bytes(record->value()))};
  forget(*record);
  return out;
}

void PackedCells::erase(uint64_t hash, BytesView key) {
  if (Record* record = index_.find(hash, key)) forget(*record);
}

void PackedCells::clear() {
  index_.clear();
  blocks_.clear();
  free_.clear();
  count_ = live_ = 0;
}

void PackedCells::forget(Record& record) {
  index_.erase(&record);
  live_ -= record.size();
  record.version = 0;
  --count_;
}

// Returns room in the newest block, or starts a new one.
PackedCells::Record* PackedCells::room_for(size_t size) {
  if (blocks_.empty() || kBlock - blocks_.back().used < size) {
    if (free_.empty()) free_.emplace_back();
    blocks_.push_back(std::move(free_.back()));
    free_.pop_back();
    blocks_.back().used = 0;
  }
  Block& block = blocks_.back();
  auto* record = reinterpret_cast<Record*>(block.bytes.get() + block.used);
  block.used += size;
  return record;
}

// Called before a block is started, so that the limit holds with the new block included.
void PackedCells::make_room() {
  for (int tries = 0; blocks_.size() >= most_blocks_; ++tries)
    tidy_oldest(tries < kPatience && live_ * kFullOf <= most_blocks_ * kBlock * kFull);
}

// Frees the oldest block. With `keep` its live records move behind the newest; otherwise they are
// evicted.
void PackedCells::tidy_oldest(bool keep) {
  Block oldest = std::move(blocks_.front());
  blocks_.pop_front();
  for (size_t at = 0; at < oldest.used;) {
    auto* record = reinterpret_cast<Record*>(oldest.bytes.get() + at);
    const size_t size = record->size();
    at += size;
    if (record->version == 0) continue;
    if (!keep) {
      forget(*record);
      continue;
    }
    index_.erase(record);
    Record* to = room_for(size);
    std::memcpy(static_cast<void*>(to), record, size);
    index_.insert(to);
  }
  free_.push_back(std::move(oldest));
}

}  // namespace pawl

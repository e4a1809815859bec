#include "kernel/cache.h"

#include "base/hash.h"
#include "kernel/rows_layout.h"

namespace pawl {

size_t CellCache::quick_shard(BytesView key) { return quick_hash(key) % kShards; }

Result<Cell> CellCache::read(BytesView key) {
  Shard& s = shard(key);
  {
    std::lock_guard lock(s.mutex);
    if (auto it = s.by_key.find(key); it != s.by_key.end()) {
      s.order.splice(s.order.begin(), s.order, it->second);
      return it->second->cell;
    }
  }
  uint64_t before = epoch_.load();
  TRY(auto row, rows_.get(layout::cell_row(key)));
  if (!row) return Cell{};
  Cell cell = layout::parse_cell(*row);
  std::lock_guard lock(s.mutex);
  if (before % 2 == 0 && epoch_.load() == before && !s.by_key.count(key)) insert(s, key, cell);
  return cell;
}

void CellCache::insert(Shard& s, BytesView key, const Cell& cell) {
  // A decoded form, there or to come, is taken to weigh as much as its bytes, twice over.
  size_t weight = kEntryOverhead + 2 * key.size() + cell.value().size() * 3;
  s.order.push_front({Key(key), cell, weight});
  s.by_key.emplace(s.order.front().key, s.order.begin());
  s.bytes += weight;
  while (s.bytes > shard_bytes_ && s.order.size() > 1) {
    Entry& last = s.order.back();
    s.bytes -= last.bytes;
    s.by_key.erase(last.key);
    s.order.pop_back();
  }
}

void CellCache::put(BytesView key, const Cell& cell) {
  Shard& s = shard(key);
  std::lock_guard lock(s.mutex);
  if (auto it = s.by_key.find(key); it != s.by_key.end()) {
    auto entry = it->second;
    s.bytes -= entry->bytes;
    s.by_key.erase(it);
    s.order.erase(entry);
  }
  if (cell.exists()) insert(s, key, cell);
}

void CellCache::clear() {
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    s.by_key.clear();
    s.order.clear();
    s.bytes = 0;
  }
}

}  // namespace pawl

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
  if (before % 2 == 0 && epoch_.load() == before && !s.by_key.count(key)) insert(s, key, cell, 0);
  return cell;
}

void CellCache::insert(Shard& s, BytesView key, const Cell& cell, Seq seq) {
  // A decoded form, there or to come, is taken to weigh as much as its bytes, twice over.
  size_t weight = kEntryOverhead + 2 * key.size() + cell.value().size() * 3;
  s.order.push_front({Key(key), cell, weight, seq});
  s.by_key.emplace(s.order.front().key, s.order.begin());
  s.bytes += weight;
  evict(s);
}

void CellCache::evict(Shard& s) {
  Seq applied = applied_.load(std::memory_order_relaxed);
  // Those that must stay are passed over, a few at a time: the rows will have them soon.
  for (int passed = 0; s.bytes > shard_bytes_ && s.order.size() > 1 && passed < 8;) {
    auto last = std::prev(s.order.end());
    if (last->seq > applied) {
      s.order.splice(s.order.begin(), s.order, last);
      ++passed;
      continue;
    }
    drop(s, last);
  }
}

void CellCache::drop(Shard& s, std::list<Entry>::iterator entry) {
  s.bytes -= entry->bytes;
  s.by_key.erase(entry->key);
  s.order.erase(entry);
}

void CellCache::end(Seq seq) {
  applied_.store(seq);
  epoch_.fetch_add(1);
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    for (; !s.erased.empty() && s.erased.front().first <= seq; s.erased.pop_front()) {
      auto it = s.by_key.find(s.erased.front().second);
      if (it != s.by_key.end() && !it->second->cell.exists() && it->second->seq <= seq) drop(s, it->second);
    }
  }
}

void CellCache::put(BytesView key, const Cell& cell, Seq seq) {
  Shard& s = shard(key);
  std::lock_guard lock(s.mutex);
  if (!cell.exists()) s.erased.emplace_back(seq, key);
  auto it = s.by_key.find(key);
  if (it == s.by_key.end()) return insert(s, key, cell, seq);
  auto entry = it->second;
  s.bytes += 3 * cell.value().size();
  s.bytes -= 3 * entry->cell.value().size();
  entry->bytes += 3 * cell.value().size();
  entry->bytes -= 3 * entry->cell.value().size();
  entry->cell = cell;
  entry->seq = seq;
  s.order.splice(s.order.begin(), s.order, entry);
  evict(s);
}

void CellCache::clear() {
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    s.by_key.clear();
    s.order.clear();
    s.erased.clear();
    s.bytes = 0;
  }
}

}  // namespace pawl

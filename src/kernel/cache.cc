#include "kernel/cache.h"

#include "base/hash.h"
#include "kernel/rows_layout.h"

namespace pawl {

size_t CellCache::quick_shard(BytesView key) { return quick_hash(key) % kShards; }

void CellCache::Shard::link(Entry& entry) {
  entry.newer = nullptr;
  entry.older = newest;
  if (newest) newest->newer = &entry;
  else oldest = &entry;
  newest = &entry;
}

void CellCache::Shard::unlink(Entry& entry) {
  (entry.newer ? entry.newer->older : newest) = entry.older;
  (entry.older ? entry.older->newer : oldest) = entry.newer;
}

void CellCache::Shard::touch(Entry& entry) {
  if (newest == &entry) return;
  unlink(entry);
  link(entry);
}

Result<Cell> CellCache::read(BytesView key) {
  Shard& s = shard(key);
  {
    std::lock_guard lock(s.mutex);
    if (auto it = s.by_key.find(key); it != s.by_key.end()) {
      Entry& entry = it->second;
      s.touch(entry);
      Cell cell = entry.cell;
      if (!entry.decoded && cell.stored && cell.stored->has_decoded()) {
        weigh(s, entry);
        evict(s);
      }
      return cell;
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

// A decoded form is taken to weigh twice its bytes. What was just read will often be decoded next.
size_t CellCache::weight(const Entry& entry) {
  return kEntryOverhead + 2 * entry.key->size() + entry.cell.value().size() * (entry.decoded ? 3 : 1);
}

void CellCache::weigh(Shard& s, Entry& entry) {
  entry.decoded = entry.seq == 0 || (entry.cell.stored && entry.cell.stored->has_decoded());
  s.bytes -= entry.bytes;
  s.bytes += entry.bytes = weight(entry);
}

void CellCache::insert(Shard& s, BytesView key, const Cell& cell, Seq seq) {
  auto it = s.by_key.try_emplace(Key(key)).first;
  Entry& entry = it->second;
  entry.key = &it->first;
  entry.cell = cell;
  entry.seq = seq;
  s.link(entry);
  weigh(s, entry);
  evict(s);
}

void CellCache::evict(Shard& s) {
  Seq applied = applied_.load(std::memory_order_relaxed);
  // Those that must stay are passed over, a few at a time: the rows will have them soon.
  for (int passed = 0; s.bytes > shard_bytes_ && s.oldest != s.newest && passed < 8;) {
    if (s.oldest->seq > applied) {
      s.touch(*s.oldest);
      ++passed;
      continue;
    }
    drop(s, *s.oldest);
  }
}

void CellCache::drop(Shard& s, Entry& entry) {
  s.bytes -= entry.bytes;
  s.unlink(entry);
  s.by_key.erase(s.by_key.find(*entry.key));
}

void CellCache::end(Seq seq) {
  applied_.store(seq);
  epoch_.fetch_add(1);
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    for (; !s.erased.empty() && s.erased.front().first <= seq; s.erased.pop_front()) {
      auto it = s.by_key.find(s.erased.front().second);
      if (it != s.by_key.end() && !it->second.cell.exists() && it->second.seq <= seq) drop(s, it->second);
    }
  }
}

void CellCache::put(BytesView key, const Cell& cell, Seq seq) {
  Shard& s = shard(key);
  std::lock_guard lock(s.mutex);
  if (!cell.exists()) s.erased.emplace_back(seq, key);
  auto it = s.by_key.find(key);
  if (it == s.by_key.end()) return insert(s, key, cell, seq);
  Entry& entry = it->second;
  entry.cell = cell;
  entry.seq = seq;
  s.touch(entry);
  weigh(s, entry);
  evict(s);
}

void CellCache::clear() {
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    s.by_key.clear();
    s.newest = s.oldest = nullptr;
    s.erased.clear();
    s.bytes = 0;
  }
}

}  // namespace pawl

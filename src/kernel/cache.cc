#include "kernel/cache.h"

#include <random>

#include "base/hash.h"
#include "kernel/rows_layout.h"

namespace pawl {

// One block of memory, its key behind it.
struct CellCache::Entry {
  Cell cell{};         // durable
  Cell newer_cell{};   // written by frame `staged`, when that is not 0
  Seq staged = 0;
  Seq seq = 0;  // the group that wrote `cell` ended here: it stays until the rows have that; 0 when read from them
  uint64_t hash = 0;
  size_t bytes = 0;
  uint32_t key_size = 0;
  uint32_t leaving = 0;  // how often it stands in `erased`
  bool decoded = false;  // it is weighed with its decoded form
  Entry *newer = nullptr, *older = nullptr;
  Entry *staged_before = nullptr, *staged_after = nullptr;

  BytesView key() const { return {reinterpret_cast<const char*>(this + 1), key_size}; }
  bool may_go(Seq applied) const { return !staged && !leaving && seq <= applied; }
  static Entry* make(BytesView key) {
    Entry* entry = new (::operator new(sizeof(Entry) + key.size())) Entry;
    entry->key_size = static_cast<uint32_t>(key.size());
    std::memcpy(reinterpret_cast<char*>(entry + 1), key.data(), key.size());
    return entry;
  }
  static void free(Entry* entry) {
    entry->~Entry();
    ::operator delete(entry);
  }
};

CellCache::CellCache(const Rows& rows, size_t max_bytes) : rows_(rows), shard_bytes_(max_bytes / kShards), seed_(std::random_device{}()) {}

CellCache::~CellCache() { clear(); }

void CellCache::clear() {
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    s.table.each([](Entry* entry) { Entry::free(entry); });
    s.table.clear();
    s.newest = s.oldest = s.staged = nullptr;
    s.erased.clear();
    s.bytes = 0;
  }
}

uint64_t CellCache::hash_of(BytesView key) const {
  // Mixed once more: the top bits choose the shard, the bottom ones the place.
  uint64_t h = (quick_hash(key) ^ seed_) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}

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

void CellCache::Shard::stage(Entry& entry) {
  entry.staged_before = nullptr;
  entry.staged_after = staged;
  if (staged) staged->staged_before = &entry;
  staged = &entry;
}

void CellCache::Shard::unstage(Entry& entry) {
  (entry.staged_before ? entry.staged_before->staged_after : staged) = entry.staged_after;
  if (entry.staged_after) entry.staged_after->staged_before = entry.staged_before;
  entry.staged = 0;
  entry.newer_cell = {};
}

Result<Cell> CellCache::find(BytesView key, bool newest) {
  const uint64_t hash = hash_of(key);
  Shard& s = shard(hash);
  {
    std::lock_guard lock(s.mutex);
    if (Entry* entry = s.table.find(hash, key)) {
      s.touch(*entry);
      if (newest && entry->staged) return entry->newer_cell;
      Cell cell = entry->cell;
      if (!entry->decoded && cell.stored && cell.stored->has_decoded()) {
        weigh(s, *entry);
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
  if (before % 2 == 0 && epoch_.load() == before && !s.table.find(hash, key)) {
    insert(s, hash, key, cell, 0);
    evict(s);
  }
  return cell;
}

// A decoded form is taken to weigh twice its bytes and what a handful of blocks cost. What was just read
// will often be decoded next.
void CellCache::weigh(Shard& s, Entry& entry) {
  entry.decoded = entry.seq == 0 || (entry.cell.stored && entry.cell.stored->has_decoded());
  s.bytes -= entry.bytes;
  entry.bytes = kEntryOverhead + 2 * entry.key_size + entry.cell.value().size();
  if (entry.decoded) entry.bytes += kDecodedOverhead + 2 * entry.cell.value().size();
  s.bytes += entry.bytes;
}

CellCache::Entry& CellCache::insert(Shard& s, uint64_t hash, BytesView key, const Cell& cell, Seq seq) {
  Entry* entry = Entry::make(key);
  entry->hash = hash;
  entry->cell = cell;
  entry->seq = seq;
  s.table.insert(entry);
  s.link(*entry);
  weigh(s, *entry);
  return *entry;
}

void CellCache::evict(Shard& s) {
  Seq applied = applied_.load(std::memory_order_relaxed);
  // Those that must stay are passed over, a few at a time: the rows will have them soon.
  for (int passed = 0; s.bytes > shard_bytes_ && s.oldest != s.newest && passed < 8;) {
    if (!s.oldest->may_go(applied)) {
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
  s.table.erase(&entry);
  Entry::free(&entry);
}

void CellCache::end(Seq seq) {
  applied_.store(seq);
  epoch_.fetch_add(1);
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    for (; !s.erased.empty() && s.erased.front().first <= seq; s.erased.pop_front()) {
      Entry& entry = *s.erased.front().second;
      --entry.leaving;
      if (!entry.cell.exists() && entry.may_go(seq)) drop(s, entry);
    }
  }
}

void CellCache::stage(BytesView key, const Cell& before, const Cell& cell, Seq seq) {
  const uint64_t hash = hash_of(key);
  Shard& s = shard(hash);
  std::lock_guard lock(s.mutex);
  Entry* entry = s.table.find(hash, key);
  // Not at hand: nothing was staged or waits for the rows, so what the kernel read is the durable one.
  if (!entry) entry = &insert(s, hash, key, before, 0);
  else s.touch(*entry);
  if (!entry->staged) s.stage(*entry);
  entry->newer_cell = cell;
  entry->staged = seq;
  evict(s);
}

void CellCache::publish(BytesView key, const Cell& cell, Seq seq, Seq last) {
  const uint64_t hash = hash_of(key);
  Shard& s = shard(hash);
  std::lock_guard lock(s.mutex);
  Entry* entry = s.table.find(hash, key);
  if (!entry) entry = &insert(s, hash, key, cell, last);
  if (entry->staged == seq) s.unstage(*entry);
  entry->cell = cell;
  entry->seq = last;
  if (!cell.exists()) {
    ++entry->leaving;
    s.erased.emplace_back(last, entry);
  }
  weigh(s, *entry);
  evict(s);
}

void CellCache::each_staged(const std::function<void(BytesView, const Cell&)>& visit) {
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    for (Entry* entry = s.staged; entry; entry = entry->staged_after) visit(entry->key(), entry->newer_cell);
  }
}

}  // namespace pawl

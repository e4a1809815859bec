#include "kernel/cache.h"

#include "base/hash.h"
#include "kernel/rows_layout.h"

namespace pawl {

// An entry is one block of memory: this struct, then the bytes of the key.
struct CellCache::Entry {
  Cell cell{};        // the durable version
  Cell newer_cell{};  // the version written by frame `staged`, when `staged` is not 0
  Seq staged = 0;
  // Last frame of the group that wrote `cell`: the entry stays until the rows have applied it. 0
  // when the cell was read from the rows.
  Seq seq = 0;
  uint64_t hash = 0;
  size_t bytes = 0;
  uint32_t key_size = 0;
  uint16_t family_size = 0;  // length of the key prefix that names the family; 0: no family
  bool decoded = false;      // `bytes` includes the decoded form
  bool waiting = false;      // linked into Shard::waiting
  Family* family = nullptr;  // linked into this family's clean cells
  Neighbours<Entry> neighbours[kOrders];

  BytesView key() const { return {reinterpret_cast<const char*>(this + 1), key_size}; }
  bool is_evictable(Seq applied) const { return !staged && seq <= applied; }
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

CellCache::CellCache(const Rows& rows, size_t max_bytes, FamilyLimit families, Packing packing,
                     uint64_t hash_seed)
    : rows_(rows),
      shard_bytes_(max_bytes / kShards),
      limit_(std::move(families)),
      is_worth_packing_(std::move(packing.is_worth_packing)),
      seed_(hash_seed) {
  for (Shard& s : shards_)
    s.packed = PackedCells(packing.max_bytes / kShards);
}

CellCache::~CellCache() { clear(); }

void CellCache::clear() {
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    s.table.each([&](Entry* entry) {
      leave_family(*entry);
      Entry::free(entry);
    });
    s.table.clear();
    s.used = {};
    s.staged = {};
    s.waiting = {};
    s.bytes = 0;
    s.packed.clear();
  }
}

uint64_t CellCache::hash_of(BytesView key) const {
  // Mixed once more: the top bits choose the shard, the bottom bits the slot in its table.
  uint64_t h = (quick_hash(key) ^ seed_) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}

void CellCache::touch(Shard& s, Entry& entry) {
  s.used.touch(entry);
  if (!entry.family) return;
  std::lock_guard lock(families_mutex_);
  entry.family->clean.touch(entry);
}

Result<Cell> CellCache::find(BytesView key, bool newest) {
  const uint64_t hash = hash_of(key);
  Shard& s = shard(hash);
  Cell cell;
  bool joined = false;
  // Puts the clean cell into the first tier. Called with the shard locked.
  auto bring_in = [&] {
    Entry& entry = insert(s, hash, key, cell, 0);
    join_family(entry);
    joined = entry.family;
    evict(s);
  };
  {
    std::lock_guard lock(s.mutex);
    if (Entry* entry = s.table.find(hash, key)) {
      touch(s, *entry);
      if (newest && entry->staged) return entry->newer_cell;
      cell = entry->cell;
      if (!entry->decoded && cell.stored && cell.stored->has_decoded()) {
        weigh(s, *entry);
        evict(s);
      }
      return cell;
    }
    cell = s.packed.take(hash, key);
    if (cell.exists()) bring_in();
  }
  if (!cell.exists()) {
    const uint64_t before = epoch_.load();
    TRY(auto row, rows_.get(layout::cell_row(key)));
    if (!row) return Cell{};
    cell = layout::parse_cell(*row);
    std::lock_guard lock(s.mutex);
    if (before % 2 || epoch_.load() != before || s.table.find(hash, key)) return cell;
    s.packed.erase(hash, key);  // another reader may have loaded it, and it was evicted since
    bring_in();
  }
  if (joined) trim_families();
  return cell;
}

// A decoded form is estimated at twice the encoded bytes plus a few allocations. A cell that was
// just read is charged for it at once, because it is usually decoded next.
void CellCache::weigh(Shard& s, Entry& entry) {
  entry.decoded = entry.seq == 0 || (entry.cell.stored && entry.cell.stored->has_decoded());
  s.bytes -= entry.bytes;
  entry.bytes = kEntryOverhead + 2 * entry.key_size + entry.cell.value().size();
  if (entry.decoded) entry.bytes += kDecodedOverhead + 2 * entry.cell.value().size();
  s.bytes += entry.bytes;
}

CellCache::Entry& CellCache::insert(Shard& s, uint64_t hash, BytesView key, const Cell& cell,
                                    Seq seq) {
  Entry* entry = Entry::make(key);
  entry->hash = hash;
  entry->cell = cell;
  entry->seq = seq;
  if (limit_.max_clean_cells)
    entry->family_size = static_cast<uint16_t>(limit_.family_of(key).size());
  s.table.insert(entry);
  s.used.link(*entry);
  weigh(s, *entry);
  return *entry;
}

void CellCache::evict(Shard& s) {
  Seq applied = applied_.load(std::memory_order_relaxed);
  // Entries that must stay are skipped, at most 8 a call: the rows will have them soon.
  for (int passed = 0; s.bytes > shard_bytes_ && s.used.oldest != s.used.newest && passed < 8;) {
    if (!s.used.oldest->is_evictable(applied)) {
      s.used.touch(*s.used.oldest);
      ++passed;
      continue;
    }
    leave(s, *s.used.oldest);
  }
}

// Evicts a clean entry to the second tier.
void CellCache::leave(Shard& s, Entry& entry) {
  if (entry.cell.exists() && (!is_worth_packing_ || is_worth_packing_(entry.key())))
    s.packed.put(entry.hash, entry.key(), entry.cell);
  drop(s, entry);
}

void CellCache::drop(Shard& s, Entry& entry) {
  s.bytes -= entry.bytes;
  s.used.unlink(entry);
  if (entry.waiting) s.waiting.unlink(entry);
  leave_family(entry);
  s.table.erase(&entry);
  Entry::free(&entry);
}

// Links the entry into Shard::waiting if end() must act on it once the rows hold it: an erased cell
// is dropped then, and a cell of a family becomes clean.
void CellCache::step_aside(Shard& s, Entry& entry) {
  leave_family(entry);
  if (entry.waiting) s.waiting.unlink(entry);
  entry.waiting = !entry.cell.exists() || entry.family_size;
  if (entry.waiting) s.waiting.link(entry);
}

void CellCache::end(Seq seq) {
  applied_.store(seq);
  epoch_.fetch_add(1);
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    while (s.waiting.oldest && s.waiting.oldest->seq <= seq) {
      Entry& entry = *s.waiting.oldest;
      s.waiting.unlink(entry);
      entry.waiting = false;
      if (entry.staged) continue;
      if (entry.cell.exists())
        join_family(entry);
      else
        drop(s, entry);
    }
  }
  trim_families();
}

// Called with the entry's shard locked. The entry must be clean.
void CellCache::join_family(Entry& entry) {
  if (!entry.family_size) return;
  const BytesView name = entry.key().substr(0, entry.family_size);
  const uint64_t hash = hash_of(name);
  std::lock_guard lock(families_mutex_);
  Family* family = families_.find(hash, name);
  if (!family) families_.insert(family = new Family{Bytes(name), hash});
  family->clean.link(entry);
  entry.family = family;
  if (family->count++ == limit_.max_clean_cells) crowded_.push_back(family);
  ++in_families_;
}

void CellCache::leave_family(Entry& entry) {
  if (!entry.family) return;
  std::lock_guard lock(families_mutex_);
  Family* family = std::exchange(entry.family, nullptr);
  family->clean.unlink(entry);
  --in_families_;
  if (--family->count == limit_.max_clean_cells) std::erase(crowded_, family);
  if (family->count) return;
  families_.erase(family);
  delete family;
}

// The entry to evict may be in any shard, and a shard's mutex is locked before that of the
// families. So the victim is chosen without the shard's lock, and chosen again once both are held.
void CellCache::trim_families() {
  auto first_to_evict = [&] { return crowded_.empty() ? nullptr : crowded_.back()->clean.oldest; };
  for (;;) {
    Shard* s = nullptr;
    {
      std::lock_guard lock(families_mutex_);
      if (Entry* entry = first_to_evict()) s = &shard(entry->hash);
    }
    if (!s) return;
    std::lock_guard lock(s->mutex);
    Entry* leaving = nullptr;
    {
      std::lock_guard families(families_mutex_);
      if (Entry* entry = first_to_evict(); entry && &shard(entry->hash) == s) leaving = entry;
    }
    if (leaving) leave(*s, *leaving);
  }
}

size_t CellCache::in_families() const {
  std::lock_guard lock(families_mutex_);
  return in_families_;
}

size_t CellCache::packed() {
  size_t all = 0;
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    all += s.packed.count();
  }
  return all;
}

void CellCache::stage(BytesView key, const Cell& before, const Cell& cell, Seq seq) {
  const uint64_t hash = hash_of(key);
  Shard& s = shard(hash);
  std::lock_guard lock(s.mutex);
  Entry* entry = s.table.find(hash, key);
  // The cell is not cached, so nothing is staged and nothing waits for the rows: `before` is the
  // durable version.
  if (!entry) {
    s.packed.erase(hash, key);
    entry = &insert(s, hash, key, before, 0);
  } else {
    s.used.touch(*entry);
  }
  leave_family(*entry);
  if (!entry->staged) s.staged.link(*entry);
  entry->newer_cell = cell;
  entry->staged = seq;
  evict(s);
}

void CellCache::publish(BytesView key, const Cell& cell, Seq seq, Seq last) {
  const uint64_t hash = hash_of(key);
  Shard& s = shard(hash);
  std::lock_guard lock(s.mutex);
  Entry* entry = s.table.find(hash, key);
  if (!entry) {
    s.packed.erase(hash, key);
    entry = &insert(s, hash, key, cell, last);
  }
  if (entry->staged == seq) {
    s.staged.unlink(*entry);
    entry->staged = 0;
    entry->newer_cell = {};
  }
  entry->cell = cell;
  entry->seq = last;
  step_aside(s, *entry);
  weigh(s, *entry);
  evict(s);
}

void CellCache::each_staged(const std::function<void(BytesView, const Cell&)>& visit) {
  for (Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    for (Entry* entry = s.staged.newest; entry; entry = entry->neighbours[kStaged].older)
      visit(entry->key(), entry->newer_cell);
  }
}

}  // namespace pawl

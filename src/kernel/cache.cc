#include "kernel/cache.h"

#include <random>

#include "base/hash.h"
#include "kernel/rows_layout.h"

namespace pawl {

// One block of memory, its key behind it.
struct CellCache::Entry {
  Cell cell{};        // durable
  Cell newer_cell{};  // written by frame `staged`, when that is not 0
  Seq staged = 0;
  Seq seq = 0;  // the group that wrote `cell` ended here: it stays until the rows have that; 0 when
                // read from them
  uint64_t hash = 0;
  size_t bytes = 0;
  uint32_t key_size = 0;
  uint16_t family_size = 0;  // of the key's lead that names its family
  bool decoded = false;      // it is weighed with its decoded form
  bool waiting = false;      // in that order
  Family* family = nullptr;  // among whose clean cells it is
  Neighbours<Entry> neighbours[kOrders];

  BytesView key() const { return {reinterpret_cast<const char*>(this + 1), key_size}; }
  bool may_go(Seq applied) const { return !staged && seq <= applied; }
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

CellCache::CellCache(const Rows& rows, size_t max_bytes, FamilyLimit families, Packing packing)
    : rows_(rows),
      shard_bytes_(max_bytes / kShards),
      limit_(std::move(families)),
      not_worth_packing_(std::move(packing.not_worth)),
      seed_(std::random_device{}()) {
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
    s.used = {}, s.staged = {}, s.waiting = {};
    s.bytes = 0;
    s.packed.clear();
  }
}

uint64_t CellCache::hash_of(BytesView key) const {
  // Mixed once more: the top bits choose the shard, the bottom ones the place.
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
  // With the shard locked: it is clean, and at hand from now on.
  auto bring = [&] {
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
    if (cell.exists()) bring();
  }
  if (!cell.exists()) {
    const uint64_t before = epoch_.load();
    TRY(auto row, rows_.get(layout::cell_row(key)));
    if (!row) return Cell{};
    cell = layout::parse_cell(*row);
    std::lock_guard lock(s.mutex);
    if (before % 2 || epoch_.load() != before || s.table.find(hash, key)) return cell;
    s.packed.erase(hash, key);  // somebody else had it meanwhile, and it left
    bring();
  }
  if (joined) trim_families();
  return cell;
}

// A decoded form is taken to weigh twice its bytes and what a handful of blocks cost. What was just
// read will often be decoded next.
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
  if (limit_.max) entry->family_size = static_cast<uint16_t>(limit_.of(key).size());
  s.table.insert(entry);
  s.used.link(*entry);
  weigh(s, *entry);
  return *entry;
}

void CellCache::evict(Shard& s) {
  Seq applied = applied_.load(std::memory_order_relaxed);
  // Those that must stay are passed over, a few at a time: the rows will have them soon.
  for (int passed = 0; s.bytes > shard_bytes_ && s.used.oldest != s.used.newest && passed < 8;) {
    if (!s.used.oldest->may_go(applied)) {
      s.used.touch(*s.used.oldest);
      ++passed;
      continue;
    }
    leave(s, *s.used.oldest);
  }
}

// The rows have it.
void CellCache::leave(Shard& s, Entry& entry) {
  if (entry.cell.exists() && !(not_worth_packing_ && not_worth_packing_(entry.key())))
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

// When the rows have it, it is forgotten if it was erased, and may go if it has a family.
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

// With the entry's shard locked; it must be clean.
void CellCache::join_family(Entry& entry) {
  if (!entry.family_size) return;
  const BytesView name = entry.key().substr(0, entry.family_size);
  const uint64_t hash = hash_of(name);
  std::lock_guard lock(families_mutex_);
  Family* family = families_.find(hash, name);
  if (!family) families_.insert(family = new Family{Bytes(name), hash});
  family->clean.link(entry);
  entry.family = family;
  if (family->count++ == limit_.max) crowded_.push_back(family);
  ++in_families_;
}

void CellCache::leave_family(Entry& entry) {
  if (!entry.family) return;
  std::lock_guard lock(families_mutex_);
  Family* family = std::exchange(entry.family, nullptr);
  family->clean.unlink(entry);
  --in_families_;
  if (--family->count == limit_.max) std::erase(crowded_, family);
  if (family->count) return;
  families_.erase(family);
  delete family;
}

// The one to leave may stand in any shard, whose lock comes before that of the families: no lock is
// held here, and who leaves is asked again when both are.
void CellCache::trim_families() {
  auto first_to_leave = [&] { return crowded_.empty() ? nullptr : crowded_.back()->clean.oldest; };
  for (;;) {
    Shard* s = nullptr;
    {
      std::lock_guard lock(families_mutex_);
      if (Entry* entry = first_to_leave()) s = &shard(entry->hash);
    }
    if (!s) return;
    std::lock_guard lock(s->mutex);
    Entry* leaving = nullptr;
    {
      std::lock_guard families(families_mutex_);
      if (Entry* entry = first_to_leave(); entry && &shard(entry->hash) == s) leaving = entry;
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
  // Not at hand: nothing was staged or waits for the rows, so what the kernel read is the durable
  // one.
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

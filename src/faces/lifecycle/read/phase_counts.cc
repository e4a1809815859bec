#include "faces/lifecycle/read/phase_counts.h"

#include "faces/lifecycle/read/views.h"

namespace pawl::lifecycle {

namespace {

// Applying a frame costs about as much as counting this many rows: the frame comes from the journal
// and the previous version of its instance from the rows.
constexpr size_t kRowsPerFrame = 8;
// So few frames are always applied.
constexpr size_t kMinFrames = 64;

std::string counts_key(const InstanceName& name) {
  return std::string(name.tenant) + '\0' + std::string(name.type);
}

// Adds the instance of the cell to the counts, or takes it out.
void adjust(TypeCounts& into, const Cell& cell, bool in) {
  if (!cell.exists()) return;
  auto stored = decode_instance(cell.value());
  if (!stored) {
    into.unreadable = in ? into.unreadable + 1 : into.unreadable - 1;
    return;
  }
  auto it = into.by_phase.try_emplace(std::string(stored->phase)).first;
  it->second = in ? it->second + 1 : it->second - 1;
  if (it->second == 0) into.by_phase.erase(it);
}

}  // namespace

Result<void> PhaseCounts::recount(const ReadSnapshot& snapshot) {
  counts_.clear();
  total_ = 0;
  ++recounts_;
  TRY_OK(snapshot.rows("lifecycle", prefix({"f"}), [&](BytesView key, BytesView) {
    // The key is f, tenant, type, phase, position; zero bytes end each part.
    size_t type_at = key.find('\0', 2), phase_at = key.find('\0', type_at + 1),
           end = key.find('\0', phase_at + 1);
    TypeCounts& counts = counts_[std::string(key.substr(2, phase_at - 2))];
    ++counts.by_phase[unescaped(key.substr(phase_at + 1, end - phase_at - 1))];
    ++total_;
    return true;
  }));
  TRY_OK(snapshot.rows("lifecycle", prefix({"u"}), [&](BytesView key, BytesView) {
    size_t type_at = key.find('\0', 2), end = key.find('\0', type_at + 1);
    ++counts_[std::string(key.substr(2, end - 2))].unreadable;
    return true;
  }));
  counted_to_ = snapshot.seq();
  counted_ = true;
  return {};
}

Result<bool> PhaseCounts::apply_frames(const ReadSnapshot& snapshot) {
  Seq now = snapshot.seq();
  if (now < counted_to_ ||
      (now - counted_to_) * kRowsPerFrame > total_ + kMinFrames * kRowsPerFrame)
    return false;
  std::map<Key, StoredPtr> changed;  // the newest value of each instance that was written
  // Collected first and counted afterwards: an instance may be written many times.
  auto read = kernel_.frames(counted_to_ + 1, [&](const Frame& frame) -> Result<bool> {
    if (frame.seq > now) return false;
    InstanceName name;
    if (frame.program == "lifecycle")
      for (const Frame::Write& write : frame.writes)
        if (split_instance(write.key, name)) changed[write.key] = write.value;
    return true;
  });
  // The journal may have been trimmed: count the rows.
  if (!read) return false;
  for (const auto& [key, value] : changed) {
    InstanceName name;
    CHECK(split_instance(key, name));
    // Instances keep every version, so the value before these frames can still be read.
    TRY(Cell before, snapshot.read_at(key, counted_to_));
    TypeCounts& counts = counts_[counts_key(name)];
    adjust(counts, before, false);
    adjust(counts, Cell{value ? now : 0, value}, true);
    total_ += value ? 1 : 0;
    total_ -= before.exists() ? 1 : 0;
  }
  counted_to_ = now;
  return true;
}

Result<TypeCounts> PhaseCounts::of(std::string_view tenant, std::string_view type) {
  std::lock_guard lock(mutex_);
  ReadSnapshot snapshot = kernel_.snapshot();
  if (!counted_ || snapshot.seq() != counted_to_) {
    bool done = false;
    if (counted_) {
      TRY(done, apply_frames(snapshot));
    }
    if (!done) {
      TRY_OK(recount(snapshot));
    }
  }
  // Without its last zero byte the prefix is the key of counts_.
  Bytes counted_type = prefix({tenant, type});
  counted_type.pop_back();
  auto it = counts_.find(counted_type);
  return it == counts_.end() ? TypeCounts{} : it->second;
}

}  // namespace pawl::lifecycle

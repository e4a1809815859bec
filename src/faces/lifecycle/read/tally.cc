#include "faces/lifecycle/read/tally.h"

#include "faces/lifecycle/read/views.h"

namespace pawl::lifecycle {

namespace {

// A frame is read from the journal and its instance from the rows; a counted row is only passed by.
constexpr size_t kFrameCost = 8;
constexpr size_t kAlwaysForward = 64;

std::string place_of(const InstanceName& name) {
  return std::string(name.tenant) + '\0' + std::string(name.type);
}

void count(Counts& into, const Cell& cell, bool in) {
  if (!cell.exists()) return;
  auto held = parse_held(cell.value());
  if (!held) {
    into.unreadable = in ? into.unreadable + 1 : into.unreadable - 1;
    return;
  }
  auto it = into.by_phase.try_emplace(std::string(held->phase)).first;
  it->second = in ? it->second + 1 : it->second - 1;
  if (it->second == 0) into.by_phase.erase(it);
}

}  // namespace

Result<void> Tally::recount(const ReadSnapshot& snapshot) {
  counts_.clear();
  total_ = 0;
  ++recounts_;
  TRY_OK(snapshot.rows("lifecycle", prefix({"f"}), [&](BytesView key, BytesView) {
    // f, tenant, type, phase: where the fourth part ends.
    size_t type_at = key.find('\0', 2), phase_at = key.find('\0', type_at + 1),
           end = key.find('\0', phase_at + 1);
    Counts& counts = counts_[std::string(key.substr(2, phase_at - 2))];
    ++counts.by_phase[unescaped(key.substr(phase_at + 1, end - phase_at - 1))];
    ++total_;
    return true;
  }));
  TRY_OK(snapshot.rows("lifecycle", prefix({"u"}), [&](BytesView key, BytesView) {
    size_t type_at = key.find('\0', 2), end = key.find('\0', type_at + 1);
    ++counts_[std::string(key.substr(2, end - 2))].unreadable;
    return true;
  }));
  upto_ = snapshot.seq();
  counted_ = true;
  return {};
}

Result<bool> Tally::bring_forward(const ReadSnapshot& snapshot) {
  Seq now = snapshot.seq();
  if (now < upto_ || (now - upto_) * kFrameCost > total_ + kAlwaysForward * kFrameCost)
    return false;
  std::map<Key, StoredPtr> changed;  // the newest value of each instance that was written
  auto read = kernel_.frames(upto_ + 1, [&](const Frame& frame) -> Result<bool> {
    if (frame.seq > now) return false;
    InstanceName name;
    if (frame.program == "lifecycle")
      for (const Frame::Write& write : frame.writes)
        if (split_instance(write.key, name)) changed[write.key] = write.value;
    return true;
  });
  if (!read) return false;
  for (const auto& [key, value] : changed) {
    InstanceName name;
    CHECK(split_instance(key, name));
    TRY(Cell before, snapshot.read_at(key, upto_));
    Counts& counts = counts_[place_of(name)];
    count(counts, before, false);
    count(counts, Cell{value ? now : 0, value}, true);
    total_ += value ? 1 : 0;
    total_ -= before.exists() ? 1 : 0;
  }
  upto_ = now;
  return true;
}

Result<Counts> Tally::of(std::string_view tenant, std::string_view type) {
  std::lock_guard lock(mutex_);
  ReadSnapshot snapshot = kernel_.snapshot();
  if (!counted_ || snapshot.seq() != upto_) {
    bool done = false;
    if (counted_) {
      TRY(done, bring_forward(snapshot));
    }
    if (!done) {
      TRY_OK(recount(snapshot));
    }
  }
  // The prefix without its last zero byte is what instances are kept under.
  Bytes place = prefix({tenant, type});
  place.pop_back();
  auto it = counts_.find(place);
  return it == counts_.end() ? Counts{} : it->second;
}

}  // namespace pawl::lifecycle

#include "faces/entities/store/counts.h"

#include "faces/entities/store/entity.h"
#include "kernel/frame.h"

namespace pawl::entities {

void StateCounts::add(std::string_view model, int32_t version, std::string_view state, int64_t by) {
  States& states = models_[{std::string(model), version}];
  auto [count, inserted] = states.try_emplace(std::string(state), 0);
  count->second += by;
  if (count->second == 0) states.erase(count);
}

void StateCounts::add(const StateChange& change) {
  if (change.before) add(change.model, change.version, *change.before, -1);
  if (change.after) add(change.model, change.version, *change.after, 1);
}

std::vector<StateCounts::Row> StateCounts::rows() const {
  std::vector<Row> out;
  for (const auto& [model, states] : models_)
    for (const auto& [state, count] : states)
      out.push_back({model.first, model.second, state, count});
  return out;
}

int64_t StateCounts::total(std::string_view model, int32_t version) const {
  auto states = models_.find({std::string(model), version});
  int64_t sum = 0;
  if (states != models_.end())
    for (const auto& [state, count] : states->second)
      sum += count;
  return sum;
}

Result<void> Counts::start() {
  // Watch before locking mutex_: the kernel calls take() with its own lock held, so the order of
  // the locks is always the kernel's first.
  watch_ = kernel_.watch([this](const Frame& frame) { take(frame); });
  std::lock_guard lock(mutex_);
  tenants_.clear();  // the snapshot includes the frames taken since
  ReadSnapshot snapshot = kernel_.snapshot();
  counted_ = snapshot.seq();
  return snapshot.scan(prefix({kProgram}), [&](BytesView key, const Cell& cell) {
    EntityView e;
    if (is_entity_key(key) && view_entity(cell.value(), e))
      tenants_[parts_of(key)[1]].add(e.model, e.version, e.state, 1);
    return true;
  });
}

void Counts::stop() {
  if (watch_) kernel_.unwatch(watch_);
  watch_ = 0;
}

void Counts::take(const Frame& frame) {
  if (frame.program != kProgram || frame.notes.empty()) return;
  std::lock_guard lock(mutex_);
  // Already in the cells that start() counted.
  if (frame.seq <= counted_) return;
  for (const Bytes& note : frame.notes) {
    if (note.empty() || note[0] != kStateChangeNote) continue;
    if (auto change = decode_state_change(note)) tenants_[std::string(change->tenant)].add(*change);
  }
}

StateCounts Counts::of(std::string_view tenant) const {
  std::lock_guard lock(mutex_);
  auto counts = tenants_.find(tenant);
  return counts == tenants_.end() ? StateCounts() : counts->second;
}

int64_t Counts::total(std::string_view tenant, std::string_view model, int32_t version) const {
  std::lock_guard lock(mutex_);
  auto counts = tenants_.find(tenant);
  return counts == tenants_.end() ? 0 : counts->second.total(model, version);
}

}  // namespace pawl::entities

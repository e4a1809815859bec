#include "faces/entities/store/counts.h"

#include "faces/entities/store/entity.h"
#include "kernel/frame.h"

namespace pawl::entities {

void StateCounts::add(const std::string& model, int32_t version, const std::string& state,
                      int64_t by) {
  States& states = models_[{model, version}];
  if ((states[state] += by) == 0) states.erase(state);
}

void StateCounts::add(const Move& move) {
  if (move.existed) add(move.model, move.version, move.before, -1);
  if (move.exists) add(move.model, move.version, move.after, 1);
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
  // Before ours is taken: the door's lock is held when a frame is told, and ours comes after it
  // there.
  watch_ = kernel_.watch([this](const Frame& frame) { take(frame); });
  std::lock_guard lock(mutex_);
  tenants_.clear();  // what was told meanwhile is in the look
  ReadSnapshot snapshot = kernel_.snapshot();
  counted_ = snapshot.seq();
  return snapshot.scan(prefix({kProgram}), [&](BytesView key, const Cell& cell) {
    EntityView e;
    if (is_entity_key(key) && view_entity(cell.value(), e))
      tenants_[parts_of(key)[1]].add(std::string(e.model), e.version, std::string(e.state), 1);
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
  if (frame.seq <= counted_) return;
  for (const Bytes& note : frame.notes) {
    if (note.empty() || note[0] != kMoveNote) continue;
    if (auto move = decode_move(note)) tenants_[move->tenant].add(*move);
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

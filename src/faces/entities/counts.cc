#include "faces/entities/counts.h"

#include "faces/entities/entity.h"
#include "kernel/frame.h"

namespace pawl::entities {

Result<void> Counts::start() {
  // Before ours is taken: the door's lock is held when a frame is told, and ours comes after it there.
  watch_ = door_.watch([this](const Frame& frame) { take(frame); });
  std::lock_guard lock(mutex_);
  tenants_.clear();  // what was told meanwhile is in the look
  Look look = door_.look();
  counted_ = look.seq();
  return look.scan(prefix({kProgram}), [&](BytesView key, const Cell& cell) {
    EntityView e;
    if (is_entity_key(key) && view_entity(cell.value(), e)) add(parts_of(key)[1], std::string(e.model), e.version, std::string(e.state), 1);
    return true;
  });
}

void Counts::stop() {
  if (watch_) door_.unwatch(watch_);
  watch_ = 0;
}

void Counts::add(const std::string& tenant, const std::string& model, int32_t version, const std::string& state, int64_t by) {
  States& states = tenants_[tenant][{model, version}];
  if ((states[state] += by) == 0) states.erase(state);
}

void Counts::take(const Frame& frame) {
  if (frame.program != kProgram || frame.notes.empty()) return;
  std::lock_guard lock(mutex_);
  if (frame.seq <= counted_) return;
  for (const Bytes& note : frame.notes) {
    if (note.empty() || note[0] != kMoveNote) continue;
    auto move = decode_move(note);
    if (!move) continue;
    if (move->existed) add(move->tenant, move->model, move->version, move->before, -1);
    if (move->exists) add(move->tenant, move->model, move->version, move->after, 1);
  }
}

std::vector<Counts::Row> Counts::by_state(std::string_view tenant) const {
  std::lock_guard lock(mutex_);
  std::vector<Row> out;
  auto models = tenants_.find(tenant);
  if (models == tenants_.end()) return out;
  for (const auto& [model, states] : models->second)
    for (const auto& [state, count] : states) out.push_back({model.first, model.second, state, count});
  return out;
}

int64_t Counts::total(std::string_view tenant, std::string_view model, int32_t version) const {
  std::lock_guard lock(mutex_);
  auto models = tenants_.find(tenant);
  if (models == tenants_.end()) return 0;
  auto states = models->second.find({std::string(model), version});
  int64_t sum = 0;
  if (states != models->second.end())
    for (const auto& [state, count] : states->second) sum += count;
  return sum;
}

}  // namespace pawl::entities

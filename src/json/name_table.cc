#include "json/name_table.h"

#include <bit>
#include <functional>

namespace pawl::json {

// With half of the slots free, a search takes two or three steps; names that take this many were
// chosen to collide.
static constexpr size_t kMaxSteps = 64;

static const std::string& name_at(const Object& object, uint32_t place) {
  return object.begin()[static_cast<ptrdiff_t>(place)].name;
}

uint32_t NameTable::find(const Object& object, std::string_view name) {
  if (!is_ordered_ && slots_.size() < 2 * (object.size() + 1)) rebuild(object);
  if (!is_ordered_) {
    const size_t at = probe(object, name);
    if (at != kFlooded) return slots_[at];
    become_ordered(object);
  }
  auto found = ordered_.find(name);
  return found == ordered_.end() ? kNone : found->second;
}

void NameTable::added(const Object& object) {
  if (!is_ordered_ && slots_.size() < 2 * (object.size() + 1)) return;  // find() will rebuild
  insert(object, static_cast<uint32_t>(object.size() - 1));
}

size_t NameTable::probe(const Object& object, std::string_view name) const {
  const size_t mask = slots_.size() - 1;
  size_t at = std::hash<std::string_view>()(name) & mask;
  for (size_t steps = 0; steps < kMaxSteps; ++steps, at = (at + 1) & mask)
    if (slots_[at] == kNone || name_at(object, slots_[at]) == name) return at;
  return kFlooded;
}

void NameTable::insert(const Object& object, uint32_t place) {
  if (!is_ordered_) {
    const size_t at = probe(object, name_at(object, place));
    if (at == kFlooded) return become_ordered(object);
    if (slots_[at] == kNone) slots_[at] = place;
    return;
  }
  ordered_.try_emplace(name_at(object, place), place);
}

void NameTable::rebuild(const Object& object) {
  slots_.assign(std::bit_ceil(4 * (object.size() + 1)), kNone);
  for (uint32_t place = 0; place < object.size() && !is_ordered_; ++place)
    insert(object, place);
}

void NameTable::become_ordered(const Object& object) {
  is_ordered_ = true;
  slots_ = {};
  for (uint32_t place = 0; place < object.size(); ++place)
    ordered_.try_emplace(name_at(object, place), place);
}

}  // namespace pawl::json

#include "json/merge.h"

#include <algorithm>

namespace pawl::json {

// With fewer comparisons than this a search costs less than an index.
static constexpr size_t kIndexedFrom = 4096;

MemberFinder::MemberFinder(Object& object, size_t lookups) : object_(object) {
  indexed_ = object_.size() * lookups >= kIndexedFrom || lookups * lookups >= kIndexedFrom;
  if (!indexed_) return;
  object_.reserve(object_.size() + lookups);
}

Value* MemberFinder::find(std::string_view name) {
  if (!indexed_) return object_.find(name);
  const uint32_t place = table_.find(object_, name);
  if (place == NameTable::kNone) return nullptr;
  return &object_.begin()[static_cast<ptrdiff_t>(place)].value;
}

Value& MemberFinder::add(std::string name, Value value) {
  Value& added = object_.add(std::move(name), std::move(value));
  if (indexed_) table_.added(object_);
  return added;
}

void merge_shallow(Object& target, const Object& patch) {
  MemberFinder members(target, patch.size());
  for (const Member& m : patch) {
    if (Value* old = members.find(m.name))
      *old = m.value;
    else
      members.add(m.name, m.value);
  }
}

void merge_deep(Object& target, const Object& patch) {
  MemberFinder members(target, patch.size());
  for (const Member& m : patch) {
    Value* old = members.find(m.name);
    if (old && old->is_object() && m.value.is_object())
      merge_deep(old->object(), m.value.object());
    else if (old)
      *old = m.value;
    else
      members.add(m.name, m.value);
  }
}

// Removes the members that the patch sets to null, in one pass.
static void remove_nulls(Object& target, const Object& patch) {
  auto removes = [](const Member& m) { return m.value.is_null(); };
  if (std::none_of(patch.begin(), patch.end(), removes)) return;
  NameTable names;
  Object kept;
  kept.reserve(target.size());
  for (Member& m : target) {
    const uint32_t place = names.find(patch, m.name);
    const bool gone = place != NameTable::kNone && removes(*(patch.begin() + place));
    if (!gone) kept.add(std::move(m.name), std::move(m.value));
  }
  target = std::move(kept);
}

void merge_patch(Value& target, const Value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Object{};
  remove_nulls(target.object(), patch.object());
  MemberFinder members(target.object(), patch.object().size());
  for (const Member& m : patch.object()) {
    if (m.value.is_null()) continue;
    Value* old = members.find(m.name);
    if (!old) old = &members.add(m.name, nullptr);
    merge_patch(*old, m.value);
  }
}

}  // namespace pawl::json

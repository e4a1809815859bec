#include "json/merge.h"

namespace pawl::json {

void merge_shallow(Object& target, const Object& patch) {
  for (const Member& m : patch)
    target.set(m.name, m.value);
}

void merge_deep(Object& target, const Object& patch) {
  for (const Member& m : patch) {
    Value* old = target.find(m.name);
    if (old && old->is_object() && m.value.is_object())
      merge_deep(old->object(), m.value.object());
    else if (old)
      *old = m.value;
    else
      target.add(m.name, m.value);
  }
}

void merge_patch(Value& target, const Value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Object{};
  for (const Member& m : patch.object()) {
    if (m.value.is_null()) {
      target.object().erase(m.name);
      continue;
    }
    Value* old = target.object().find(m.name);
    if (!old) old = &target.object().add(m.name, nullptr);
    merge_patch(*old, m.value);
  }
}

}  // namespace pawl::json

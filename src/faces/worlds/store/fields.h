#pragma once
// Field lists of the structs that both cells (model.cc) and inputs (verbs.cc) hold. The order is
// the stored format. These structs lie inside others, so no field can be appended: f.later() works
// only at the end of a whole value.

#include "base/codec.h"
#include "faces/worlds/store/records.h"

namespace pawl::worlds {

template <class F, FieldsOf<Event> T>
void fields(F& f, T& v) {
  f(v.schema);
  f(v.value);
  f(v.key);
}

template <class F, FieldsOf<IntentIdentity> T>
void fields(F& f, T& v) {
  f(v.effect);
  f(v.effect_hash);
  f(v.executor_module);
  f(v.executor_module_hash);
  f(v.executor_entrypoint);
}

}  // namespace pawl::worlds

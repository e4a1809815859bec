#pragma once
// Three ways to lay one value over another.

#include "json/value.h"

namespace pawl::json {

// Each member of `patch` replaces or joins the member of `target`; nothing deeper is merged.
void merge_shallow(Object& target, const Object& patch);
// Objects merge all the way down, anything else replaces.
void merge_deep(Object& target, const Object& patch);
// RFC 7386: as deep, and a null removes the member.
void merge_patch(Value& target, const Value& patch);

}  // namespace pawl::json

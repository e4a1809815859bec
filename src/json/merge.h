#pragma once
// Three ways to merge a JSON value into another one.

#include "json/value.h"

namespace pawl::json {

// Sets each member of `patch` in `target`; nested objects are replaced.
void merge_shallow(Object& target, const Object& patch);
// Merges nested objects recursively; any other value replaces the old one.
void merge_deep(Object& target, const Object& patch);
// RFC 7386: as merge_deep, and a null removes the member.
void merge_patch(Value& target, const Value& patch);

}  // namespace pawl::json

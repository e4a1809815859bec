#pragma once
// Three ways to merge a JSON value into another one. Each takes time linear in both, also for
// objects with very many members.

#include "json/name_table.h"

namespace pawl::json {

// Finds the members of an object that many names are looked up in. A small object is searched, a
// large one is indexed. The object must outlive this, and only this may add members to it, at most
// as many as there are lookups.
class MemberFinder {
 public:
  // `lookups`: how many names will be looked up.
  MemberFinder(Object& object, size_t lookups);
  Value* find(std::string_view name);
  // Adds a member whose name is new.
  Value& add(std::string name, Value value);

 private:
  Object& object_;
  bool indexed_ = false;
  NameTable table_;
};

// Sets each member of `patch` in `target`; nested objects are replaced.
void merge_shallow(Object& target, const Object& patch);
// Merges nested objects recursively; any other value replaces the old one.
void merge_deep(Object& target, const Object& patch);
// RFC 7386: as merge_deep, and a null removes the member.
void merge_patch(Value& target, const Value& patch);

}  // namespace pawl::json

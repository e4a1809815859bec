#pragma once
// A NameTable finds the members of a large object by name. It holds the places of the members and
// no copies of their names. Names come from outside: when so many of them share a hash that a
// search gets long, the table continues as an ordered map, so that a search is never linear.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace pawl::json {

class NameTable {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};
  // The place of the first member with this name. The object is the same in all calls, and only
  // grows between them, by members that added() was told of.
  uint32_t find(const Object& object, std::string_view name);
  // A member was added at the end of the object; its name was not there before.
  void added(const Object& object);

 private:
  // The index of a slot that is free or has the name; kFlooded when that takes too many steps.
  static constexpr size_t kFlooded = ~size_t{0};
  size_t probe(const Object& object, std::string_view name) const;
  void insert(const Object& object, uint32_t place);
  void rebuild(const Object& object);
  void become_ordered(const Object& object);

  std::vector<uint32_t> slots_;  // a power of two; at least half of them are free
  bool is_ordered_ = false;
  std::map<std::string, uint32_t, std::less<>> ordered_;
};

}  // namespace pawl::json

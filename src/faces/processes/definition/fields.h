#pragma once
// The members that an object of a definition may have, with their JSON types. Each kind of object
// has a table of fields; anything else is an unknown field.

#include <algorithm>
#include <span>

#include "faces/processes/definition/definition.h"

namespace pawl::processes::document_fields {

using json::Value;

// A member that an object may have. `wants` completes the sentence "NAME must be ...".
struct Field {
  std::string_view name;
  bool (*fits)(const Value& v);
  std::string_view wants;
};

inline bool is_text(const Value& v) { return v.is_string(); }
inline bool is_flag(const Value& v) { return v.is_bool(); }
inline bool is_map(const Value& v) { return v.is_object(); }
inline bool is_list(const Value& v) { return v.is_array(); }
inline bool is_any(const Value&) { return true; }
inline bool is_number(const Value& v) { return v.is_number(); }
// By spelling: 1.0 and 1e0 are refused for an integer, as in the original.
inline bool is_whole(const Value& v) {
  return v.is_number() && v.as_int64() && v.number_text().find_first_of(".eE") == std::string::npos;
}
inline bool is_texts(const Value& v) {
  return v.is_array() && std::all_of(v.array().begin(), v.array().end(), is_text);
}
inline bool is_map_of_texts(const Value& v) {
  return v.is_object() && std::all_of(v.object().begin(), v.object().end(),
                                      [](const json::Member& m) { return m.value.is_string(); });
}
inline bool is_map_of_cells(const Value& v) {
  return v.is_object() &&
         std::all_of(v.object().begin(), v.object().end(), [](const json::Member& m) {
           return m.value.is_string() || m.value.is_null();
         });
}

// The member, or null when it is absent or JSON null. check() has verified its type.
inline const Value* member(const Value& object, std::string_view name) {
  const Value* v = object.find(name);
  return v && !v->is_null() ? v : nullptr;
}

// Adds a problem for each unknown member and each wrong type. Null counts as absent.
bool check(const Value& v, std::span<const Field> fields, const std::string& where,
           Problems& problems);

}  // namespace pawl::processes::document_fields

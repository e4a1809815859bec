#pragma once
// Checks the objects of a definition against the rows of definition/shapes.h: their members and the
// JSON types of these. Anything else is an unknown field.

#include "faces/processes/definition/definition.h"
#include "wire/member.h"

namespace pawl::processes::document_fields {

using json::Value;

// The member, or null when it is absent or JSON null. check() has verified its type.
inline const Value* member(const Value& object, std::string_view name) {
  const Value* v = object.find(name);
  return v && !v->is_null() ? v : nullptr;
}

// Adds a problem for each unknown member and each wrong type. Null counts as absent. `retired` are
// members of older documents whose own message tells how to replace them.
bool check(const Value& v, const wire::AnyShape& shape, const std::string& where,
           Problems& problems, std::initializer_list<std::string_view> retired = {});

}  // namespace pawl::processes::document_fields

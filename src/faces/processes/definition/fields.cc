#include "faces/processes/definition/fields.h"

#include <algorithm>

namespace pawl::processes::document_fields {

namespace {

using wire::Kind;

// By spelling: 1.0 and 1e0 are refused for an integer, as in the original.
bool is_whole(const Value& v) {
  return v.is_number() && v.as_int64() && v.number_text().find_first_of(".eE") == std::string::npos;
}

bool fits(Kind kind, const Value& v) {
  switch (kind) {
    case Kind::text: return v.is_string();
    case Kind::integer: return is_whole(v);
    case Kind::number: return v.is_number();
    case Kind::flag: return v.is_bool();
    case Kind::list: return v.is_array();
    case Kind::object:
    case Kind::map: return v.is_object();
    case Kind::any:
    case Kind::document:
    case Kind::octets: break;
  }
  return true;
}

// Completes the sentence "NAME must be ...".
std::string_view wanted(const wire::Type& type) {
  const bool of_texts = type.element == Kind::text;
  switch (type.kind) {
    case Kind::text: return "a string";
    case Kind::integer: return "an integer";
    case Kind::number: return "a number";
    case Kind::flag: return "a boolean";
    case Kind::list: return of_texts ? "an array of strings" : "an array";
    case Kind::object:
    case Kind::map: return of_texts ? "an object of strings" : "an object";
    case Kind::any:
    case Kind::document:
    case Kind::octets: break;
  }
  return "a value";
}

// The first element of a list or a map of texts that is not a text; null when there is none.
// Objects inside are checked by their own shapes.
const Value* wrong_element(const wire::Type& type, const Value& v) {
  if (type.element != Kind::text) return nullptr;
  auto wrong = [&](const Value& one) {
    return !one.is_string() && !(type.null_elements && one.is_null());
  };
  if (v.is_array())
    for (const Value& one : v.array())
      if (wrong(one)) return &one;
  if (v.is_object())
    for (const json::Member& one : v.object())
      if (wrong(one.value)) return &one.value;
  return nullptr;
}

void check_member(const wire::Member& row, const Value& v, const std::string& where,
                  Problems& problems) {
  if (v.is_null()) return;
  const std::string must = where + ": " + std::string(row.name) + " must be ";
  if (!fits(row.kind, v))
    problems.push_back(must + std::string(wanted(row)) + ", got " + std::string(v.kind_name()));
  else if (const Value* one = wrong_element(row, v))
    problems.push_back(must + std::string(wanted(row)) + ", but it holds " +
                       std::string(one->kind_name()));
}

}  // namespace

bool check(const Value& v, const wire::AnyShape& shape, const std::string& where,
           Problems& problems, std::initializer_list<std::string_view> retired) {
  if (!v.is_object()) {
    problems.push_back(where + " must be an object, got " + std::string(v.kind_name()));
    return false;
  }
  size_t before = problems.size();
  for (const json::Member& m : v.object()) {
    auto row = std::find_if(shape.begin(), shape.end(),
                            [&](const wire::Member& one) { return one.name == m.name; });
    if (row != shape.end()) {
      check_member(*row, m.value, where, problems);
      continue;
    }
    if (std::find(retired.begin(), retired.end(), m.name) != retired.end()) continue;
    problems.push_back(where + ": unknown field \"" + m.name +
                       "\"; known fields: " + wire::names_of(shape));
  }
  return problems.size() == before;
}

}  // namespace pawl::processes::document_fields

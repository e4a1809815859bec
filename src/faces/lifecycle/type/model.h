#pragma once
// A workflow type as this face keeps it: one cell with its definition and the rules that hang on
// its phases. Types from C++ structs and types declared as data are the same cell.

#include <map>

#include "faces/lifecycle/run/refuse.h"
#include "json/value.h"
#include "kernel/cell.h"
#include "pawl/lifecycle/types.h"

namespace pawl::lifecycle {

struct Type {
  dynamic_type def;
  // Fields whose index holds every instance: a filter may trust these and no others.
  std::vector<std::string> indexed;
  // Phase -> names of the rules that fire when an instance enters it.
  std::map<std::string, std::vector<std::string>> hooks;

  // Derived from the definition when it is read.
  std::string id_field, phase_field, parent_field;
  Bytes index_names;  // names of the indexable fields, as instance cells carry them
};
using TypePtr = std::shared_ptr<const Type>;

Key type_key(std::string_view tenant, std::string_view name);
Key type_prefix(std::string_view tenant);
Bytes encode(const Type& type);
Result<Type> decode_type(BytesView bytes);

// Fills what is derived.
Type make_type(dynamic_type def);

// Whether both say the same: the order of phases and of targets, and tags that others imply, say
// nothing. The order of fields does: states are shown in it.
bool same_definition(dynamic_type a, dynamic_type b);

// First failure wins, in the library's order: name, table, fields, bucket.
Result<void> validate(const dynamic_type& def);
Result<void> validate_table(const dynamic_type& def);

// The JSON of `PUT /pawl/v1/lifecycle/types/{type}` and back. Unknown words are refused by name.
Result<dynamic_type> parse_type(std::string_view name, const js::Value& body);
js::Value type_json(const dynamic_type& def);
// {"planning": ["flying", "aborted"], ...}
js::Value transitions_json(const dynamic_type& def);
// As the rule variable workflow_def and the library's definition() show it.
js::Value definition_json(const dynamic_type& def);

Result<void> check_id(std::string_view id);
Result<void> check_name(std::string_view name);

}  // namespace pawl::lifecycle

#pragma once
// A workflow type: its definition, its indexes, and the rules that its phases trigger. It is one
// cell. A type that a C++ struct declares and a type that was sent as data are stored the same way.

#include <map>

#include "faces/lifecycle/run/refuse.h"
#include "json/value.h"
#include "kernel/cell.h"
#include "pawl/lifecycle/types.h"

namespace pawl::lifecycle {

struct WorkflowType {
  dynamic_type def;
  // Fields whose index holds every instance. A filter may use only these indexes.
  std::vector<std::string> indexed;
  // Phase -> names of the rules that fire when an instance enters the phase.
  std::map<std::string, std::vector<std::string>> rules_by_phase;

  // Derived from the definition by make_type() and not stored.
  std::string id_field, phase_field, parent_field;
  Bytes index_names;  // names of the indexable fields, encoded as in StoredInstance
};
using WorkflowTypePtr = std::shared_ptr<const WorkflowType>;

Key type_key(std::string_view tenant, std::string_view name);
Key type_prefix(std::string_view tenant);
Bytes encode(const WorkflowType& type);
// Parses the stored JSON with parse_type(): what that refuses does not decode.
Result<WorkflowType> decode_type(BytesView bytes);

// Fills the derived members.
WorkflowType make_type(dynamic_type def);

// Compares two definitions. The order of phases and of targets does not matter, nor do tags that
// other tags imply. The order of fields matters: states are shown in that order.
bool same_definition(dynamic_type a, dynamic_type b);

// Reports the first problem, in the order: name, table, fields, bucket.
Result<void> validate(const dynamic_type& def);
Result<void> validate_table(const dynamic_type& def);

// The JSON of `PUT /pawl/v1/lifecycle/types/{type}` and back. Unknown members are refused.
Result<dynamic_type> parse_type(std::string_view name, const js::Value& body);
js::Value type_json(const dynamic_type& def);
// {"planning": ["flying", "aborted"], ...}
js::Value transitions_json(const dynamic_type& def);
// The JSON of the rule variable workflow_def and of the library's definition().
js::Value definition_json(const dynamic_type& def);

// An id is 1 to kIdBytes bytes of UTF-8 without blanks, control characters, '*' and '>' (the
// original's store reads those two as wildcards). Error: bad_id.
Result<void> check_id(std::string_view id);
Result<void> check_name(std::string_view name);

}  // namespace pawl::lifecycle

#pragma once
// Converts field values between their three forms: JSON on the wire, text in a query, bytes in a
// record. A value that does not fit the field's kind or range is refused; nothing is rounded or
// wrapped.

#include "faces/lifecycle/type/workflow_type.h"

namespace pawl::lifecycle {

// The value of a field that was never set: "", false, 0, an empty list, or empty JSON.
value zero(kind k);
// null becomes the zero value of the kind.
Result<value> coerce(std::string_view field, kind k, const js::Value& from);
// From a query parameter. Empty text becomes the zero value.
Result<value> coerce_text(std::string_view field, kind k, std::string_view text);
// Stored JSON text that does not parse becomes null; strings that are not UTF-8 are made valid.
js::Value to_json(const value& v);

// The entry as a value of kind `k`; nothing when its stored form or range does not fit.
std::optional<value> read_entry(const record::walk& at, kind k);
// A field of a record: zero when the record lacks it, nothing when the stored value does not fit.
std::optional<value> read_field(std::string_view record_bytes, const dynamic_type::field_def& f);
// A string field of the record; empty when it is missing or not a string. Points into the record.
std::string_view text_field(std::string_view record_bytes, std::string_view name);

// Returns the record with these fields replaced or added.
using FieldValues = std::vector<std::pair<std::string, value>>;
std::string with_fields(std::string_view record_bytes, const FieldValues& sets);

// Returns the record with the fields of `before` that the type does not list. They belong to
// another version of the type and must survive a write by this version.
std::string with_unlisted(std::string_view record_bytes, std::string_view before,
                          const dynamic_type& def);

// Makes a record with every field of the type from a JSON object. Unknown members are refused with
// unknown_field.
Result<std::string> record_of(const WorkflowType& type, std::string_view id_text,
                              const js::Value& body);
// Appends the state as the operator API shows it. Returns false when a stored value does not fit
// its field.
bool append_state(std::string& out, const dynamic_type& def, std::string_view record_bytes);

}  // namespace pawl::lifecycle

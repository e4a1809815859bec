#pragma once
// Field values between their three forms: JSON on the wire, text in a query, bytes in a record.
// What does not fit a field's kind or range is refused by name; nothing is rounded or wrapped.

#include "faces/lifecycle/type/model.h"

namespace pawl::lifecycle {

value zero(kind k);
// null is the zero of the kind.
Result<value> coerce(std::string_view field, kind k, const js::Value& from);
// Of a query parameter; the empty text is the zero.
Result<value> coerce_text(std::string_view field, kind k, std::string_view text);
js::Value to_json(const value& v);

// The entry as a value of this kind; nothing when it is stored in another form or out of range.
std::optional<value> read_entry(const record::walk& at, kind k);
// The field of a record; its zero when it is not there, nothing when it does not fit.
std::optional<value> read_field(std::string_view record_bytes, const dynamic_type::field_def& f);
std::string_view text_field(std::string_view record_bytes, std::string_view name);

// The record with these fields replaced or added.
using Sets = std::vector<std::pair<std::string, value>>;
std::string with_fields(std::string_view record_bytes, const Sets& sets);

// The record with what `before` has besides and the type does not list: it belongs to another
// version of the type, and no writer of this one may lose it.
std::string with_unlisted(std::string_view record_bytes, std::string_view before,
                          const dynamic_type& def);

// A JSON object of fields to a record with every field of the type. Unknown members: unknown_field.
Result<std::string> record_of(const Type& type, std::string_view id_text, const js::Value& body);
// The state as the operator API shows it. False when a stored value does not fit its field.
bool append_state(std::string& out, const dynamic_type& def, std::string_view record_bytes);

}  // namespace pawl::lifecycle

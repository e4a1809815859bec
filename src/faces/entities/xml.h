#pragma once
// XML documents as JSON values: the root's children become members, repeated elements an array,
// attributes "@name", text beside them "#text". Text that reads as a JSON number, true or false
// becomes one. No entities but the five of the language: nothing can be made to grow.

#include <string_view>

#include "json/value.h"

namespace pawl::entities {

// BAD_REQUEST naming line and what was expected; deeper than the JSON limit is refused.
Result<json::Value> parse_xml(std::string_view text);

}  // namespace pawl::entities

#pragma once
// XML documents as JSON values: attributes and children become members under their names without
// prefixes, repeated ones an array, text beside them "_text"; the text of a bare root is "_value",
// an empty element an object without members. Text that reads as a JSON number, true or false
// becomes one. No entities but the five of the language: nothing can be made to grow.

#include <string_view>

#include "json/value.h"

namespace pawl::entities {

// BAD_REQUEST naming line and what was expected; deeper than the JSON limit is refused.
Result<json::Value> parse_xml(std::string_view text);

}  // namespace pawl::entities

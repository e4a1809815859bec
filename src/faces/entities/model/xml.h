#pragma once
// Reads an XML document as a JSON value. Attributes and child elements become members; their names
// lose the namespace prefix, and several with one name become an array. Text beside members becomes
// the member "_text". The text of a root without members becomes "_value". An empty element becomes
// an empty object. Text that reads as a JSON number, true or false becomes that value.
//
// Document types are refused, so a document has no entities but the five that XML predefines and
// cannot expand to more than its size.

#include <string_view>

#include "json/value.h"

namespace pawl::entities {

// Fails with BAD_REQUEST that names the line and the error. Elements nested deeper than JSON may be
// are refused.
Result<json::Value> parse_xml(std::string_view text);

}  // namespace pawl::entities

#pragma once
// A text that is equal for equal values: numbers by value, members in the order of their names.

#include <string>

#include "json/value.h"

namespace pawl::json {

// One spelling for equal numbers: the digits without leading and trailing zeros, "e" and an
// exponent; "0" for zero. The number is an integer when the exponent is not negative.
std::string plain_number(std::string_view text);

// The members of an object keep their order when the object is the value of a member with the name
// `ordered`.
void append_canonical(std::string& out, const Value& value, std::string_view ordered = {});

}  // namespace pawl::json

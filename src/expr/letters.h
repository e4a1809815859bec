#pragma once
// Upper and lower case, character by character: the alphabets that have both and keep one character
// for one. No locale: the same on every machine.

#include <string>
#include <string_view>

namespace pawl::expr {

std::string upper_case(std::string_view text);
std::string lower_case(std::string_view text);

}  // namespace pawl::expr

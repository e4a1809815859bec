#pragma once
// Upper and lower case of texts in UTF-8, letter by letter: the same on every machine, because
// steps and criteria are run again.

#include <string>
#include <string_view>

namespace pawl {

std::string upper_case(std::string_view text);
std::string lower_case(std::string_view text);
std::string fold_case(std::string_view text);  // texts that differ in case alone become one

}  // namespace pawl

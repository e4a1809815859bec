#pragma once
// Upper and lower case of UTF-8 text by Unicode's simple mappings, one character for one. The
// tables are compiled in and not taken from the machine: replay on another machine must give the
// same text. Bytes that are not UTF-8 are kept.

#include <string>
#include <string_view>

namespace pawl {

std::string upper_case(std::string_view text);
std::string lower_case(std::string_view text);
std::string fold_case(std::string_view text);  // equal for texts that differ only in case

}  // namespace pawl

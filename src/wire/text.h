#pragma once
// Text as heads of requests and answers have it.

#include <string_view>

namespace pawl::wire {

// Without the blanks around it.
inline std::string_view trimmed(std::string_view text) {
  auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return text;
}

}  // namespace pawl::wire

#pragma once
// Text helpers for HTTP headers.

#include <string_view>

namespace pawl::wire {

// Removes spaces and tabs at both ends.
inline std::string_view trimmed(std::string_view text) {
  auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return text;
}

}  // namespace pawl::wire

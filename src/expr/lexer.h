#pragma once
// Text to tokens. Three spellings of a variable meet here: `name`, `#name` (the hash is dropped)
// and
// `${...}` (an open bracket of its own). String literals are never looked into.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pawl::expr {

enum class Lex : uint8_t { end, name, integer, real, string, symbol, pointer, accumulator };

struct Token {
  Lex lex = Lex::end;
  uint32_t at = 0;     // byte offset in the expression
  std::string text{};  // name, symbol, or the string's characters
  int64_t whole = 0;
  double number = 0;
};

// Errors carry the position as text; the caller adds which expression.
Result<std::vector<Token>> tokens(std::string_view text);

std::string position(size_t at);  // "position 5": counted from 1, as editors do

}  // namespace pawl::expr

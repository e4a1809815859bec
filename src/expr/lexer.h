#pragma once
// Splits the text of an expression into tokens. A variable may be written as `name`, as `#name`
// (the
// `#` is dropped here) and as `${name}` (`${` is a kind of bracket). The content of string literals
// is never interpreted.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pawl::expr {

enum class TokenKind : uint8_t {
  end,
  name,
  integer,
  real,
  string,
  symbol,
  element_ref,
  accumulator
};

struct Token {
  TokenKind kind = TokenKind::end;
  uint32_t at = 0;     // byte offset in the expression
  std::string text{};  // name, symbol, or the string's characters
  int64_t whole = 0;
  double number = 0;
};

// Errors name the position; the caller adds the expression.
Result<std::vector<Token>> tokens(std::string_view text);

std::string position(size_t at);  // "position 5" for byte offset 4: positions count from 1

}  // namespace pawl::expr

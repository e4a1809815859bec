#pragma once
// Parsing and printing of JSON text. Parsing is strict RFC 8259 (with Boost.JSON's parser). When an
// object has two members with one name, the last one wins, as the contracts that we serve require.

#include <string>
#include <string_view>

#include "json/value.h"

namespace pawl::json {

struct ParseOptions {
  size_t max_depth = limits::kJsonDepth;
  size_t max_bytes = limits::kBodyBytes;
  // Ignore text after the first value, as one of the contracts requires.
  bool prefix = false;
};

// Errors: BAD_JSON with line and column, JSON_TOO_DEEP, JSON_TOO_LARGE.
Result<Value> parse(std::string_view text, const ParseOptions& options = {});

// Prints compact text: no spaces, members in order, numbers with the digits they were read with.
std::string print(const Value& value);
void append(std::string& out, const Value& value);
// Appends the text as a JSON string with quotes. Bytes that are not UTF-8 become U+FFFD.
void append_string(std::string& out, std::string_view text);
inline std::string quote(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}
// Prints with an indentation of two spaces a level, for people.
std::string print_pretty(const Value& value);

}  // namespace pawl::json

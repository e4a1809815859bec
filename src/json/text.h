#pragma once
// JSON text to values and back. Parsing is strict RFC 8259 (Boost.JSON underneath); of two members
// with one name the last wins, as in the peers.

#include <string>
#include <string_view>

#include "json/value.h"

namespace pawl::json {

struct ParseOptions {
  size_t max_depth = limits::kJsonDepth;
  size_t max_bytes = limits::kBodyBytes;
  // Take the first value and ignore what follows it, as some peers do.
  bool prefix = false;
};

// Errors: BAD_JSON with line and column, JSON_TOO_DEEP, JSON_TOO_LARGE.
Result<Value> parse(std::string_view text, const ParseOptions& options = {});

// Compact: no spaces, members in order, digits as they came.
std::string print(const Value& value);
void append(std::string& out, const Value& value);
// The text as a JSON string with its quotes.
void append_string(std::string& out, std::string_view text);
inline std::string quote(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}
// Two spaces a level, for people.
std::string print_pretty(const Value& value);

}  // namespace pawl::json

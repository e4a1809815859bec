#pragma once
// The types of the values that people write in flags, environment variables and the configuration
// file. The commands of the CLI and the settings of the server share them.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace pawl::server {

enum class ValueKind {
  nothing,   // a switch: it is present or absent
  boolean,   // true, false, 1, 0, yes, no, on, off; a flag alone means true
  text,      // any text
  secret,    // any text; never printed
  path,      // of a file or folder
  number,    // whole, not negative
  seconds,   // a number of seconds, with or without a fraction
  bytes,     // 256MiB, 1GiB, 512KiB, or a bare number of bytes
  duration,  // 500ms, 10s, 5m, 1h, a bare number of seconds, or ISO 8601
  address,   // to listen on: 127.0.0.1:8080; a bare port is on 127.0.0.1
  server,    // to connect to: HOST:PORT or a URL
  time,      // RFC 3339: 2026-01-31T12:00:00Z
  pair,      // NAME=VALUE
  one_of,    // one of the alternatives in ValueType::shown
};

struct ValueType {
  ValueKind kind = ValueKind::nothing;
  std::string_view shown{};  // in the help: "N", "FILE"; for one_of the alternatives: "svg|dot"
};

// The types as the tables of flags and settings write them.
namespace values {
constexpr ValueType none() { return {}; }
constexpr ValueType boolean() { return {ValueKind::boolean, "[=true|false]"}; }
constexpr ValueType text(std::string_view shown) { return {ValueKind::text, shown}; }
constexpr ValueType secret() { return {ValueKind::secret, "SECRET"}; }
constexpr ValueType path(std::string_view shown) { return {ValueKind::path, shown}; }
constexpr ValueType number(std::string_view shown) { return {ValueKind::number, shown}; }
constexpr ValueType seconds() { return {ValueKind::seconds, "SECONDS"}; }
constexpr ValueType bytes() { return {ValueKind::bytes, "BYTES"}; }
constexpr ValueType duration() { return {ValueKind::duration, "DURATION"}; }
constexpr ValueType address() { return {ValueKind::address, "HOST:PORT"}; }
constexpr ValueType server() { return {ValueKind::server, "HOST:PORT"}; }
constexpr ValueType time() { return {ValueKind::time, "TIME"}; }
constexpr ValueType pair(std::string_view shown) { return {ValueKind::pair, shown}; }
constexpr ValueType one_of(std::string_view shown) { return {ValueKind::one_of, shown}; }
}  // namespace values

// The value in its normal form, or nothing when the type does not allow it.
std::optional<std::string> normal_value(const ValueType& type, std::string_view text);
// The values that the type allows, for a refusal: "a whole number", "svg, mermaid or dot".
std::string allowed_values(const ValueType& type);

// Values in their normal form, as numbers.
std::optional<int64_t> parse_whole_number(std::string_view text);
std::optional<double> parse_seconds(std::string_view text);
std::optional<uint64_t> parse_bytes(std::string_view text);
Result<Time> parse_setting_duration(std::string_view text);

// "; did you mean --X?", where X is the name that differs from `name` in the fewest letters and
// "--" is `mark`. Empty when all names are very different.
std::string suggestion(std::string_view name, std::span<const std::string_view> names,
                       std::string_view mark = {});

}  // namespace pawl::server

#include "server/ops/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "server/http/address.h"

namespace pawl::server {
namespace {

std::optional<bool> parse_boolean(std::string_view text) {
  for (std::string_view yes : {"true", "1", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"false", "0", "no", "off"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::vector<std::string_view> alternatives(std::string_view shown) {
  std::vector<std::string_view> out;
  while (!shown.empty()) {
    size_t bar = std::min(shown.find('|'), shown.size());
    out.push_back(shown.substr(0, bar));
    shown.remove_prefix(std::min(bar + 1, shown.size()));
  }
  return out;
}

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// HOST, HOST:PORT, [IPV6]:PORT, or one of them after http:// or https://. A bare number is refused:
// it could be meant as a port, and would be taken for a host.
bool is_server(std::string_view text) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (text.starts_with(scheme)) text.remove_prefix(scheme.size());
  }
  text = text.substr(0, text.find('/'));
  size_t bracket = text.rfind(']');
  size_t colon = text.find(':', bracket == text.npos ? 0 : bracket);
  std::string_view host = text.substr(0, colon);
  if (host.empty() || all_digits(host)) return false;
  if (host.find_first_of(" \t@?#,") != host.npos) return false;
  if (colon == text.npos) return true;
  auto port = parse_whole_number(text.substr(colon + 1));
  return port && *port > 0 && *port <= 65535;
}

// The form is checked and not the range: the server decides about years that it cannot represent.
// In place of the year stands a leap year, which has every day.
bool is_time(std::string_view text) {
  if (text.size() < 4 || !all_digits(text.substr(0, 4))) return false;
  return parse_rfc3339("2000" + std::string(text.substr(4))).has_value();
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

struct DurationUnit {
  std::string_view name;
  Time size;
};
constexpr DurationUnit kDurationUnits[] = {{"ms", kMillisecond},
                                           {"s", kSecond},
                                           {"m", 60 * kSecond},
                                           {"h", 3600 * kSecond},
                                           {"", kSecond}};

struct BytesUnit {
  std::string_view name;
  uint64_t size;
};
constexpr BytesUnit kBytesUnits[] = {
    {"KiB", uint64_t{1} << 10}, {"MiB", uint64_t{1} << 20}, {"GiB", uint64_t{1} << 30}, {"", 1}};

}  // namespace

std::optional<int64_t> parse_whole_number(std::string_view text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole =
      !text.empty() && error == std::errc() && end == text.data() + text.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

std::optional<double> parse_seconds(std::string_view text) {
  double seconds = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  bool good = !text.empty() && error == std::errc() && end == text.data() + text.size() &&
              std::isfinite(seconds) && seconds >= 0;
  return good ? std::optional(seconds) : std::nullopt;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  for (const BytesUnit& unit : kBytesUnits) {
    if (!text.ends_with(unit.name)) continue;
    auto number = parse_whole_number(text.substr(0, text.size() - unit.name.size()));
    if (number && static_cast<uint64_t>(*number) <= INT64_MAX / unit.size)
      return static_cast<uint64_t>(*number) * unit.size;
  }
  return std::nullopt;
}

Result<Time> parse_setting_duration(std::string_view text) {
  if (text.starts_with('P')) {
    TRY(Duration duration, parse_duration(text));
    if (duration.months == 0 && duration.nanos >= 0) return duration.nanos;
  }
  for (const DurationUnit& unit : kDurationUnits) {
    if (!text.ends_with(unit.name)) continue;
    auto number = parse_whole_number(text.substr(0, text.size() - unit.name.size()));
    if (number && *number <= INT64_MAX / unit.size) return *number * unit.size;
  }
  return fail(Code::invalid, "BAD_DURATION",
              "'" + std::string(text) + "' is not a duration; write 500ms, 10s, 5m or 1h");
}

std::optional<std::string> normal_value(const ValueType& type, std::string_view text) {
  std::string value(text);
  auto when = [&](bool allowed) { return allowed ? std::optional(value) : std::nullopt; };
  switch (type.kind) {
    case ValueKind::nothing: return std::nullopt;
    case ValueKind::text:
    case ValueKind::secret: return value;
    case ValueKind::path: return when(!text.empty());
    case ValueKind::number: return when(parse_whole_number(text).has_value());
    case ValueKind::seconds: return when(parse_seconds(text).has_value());
    case ValueKind::bytes: return when(parse_bytes(text).has_value());
    case ValueKind::duration: return when(parse_setting_duration(text).has_value());
    case ValueKind::server: return when(is_server(text));
    case ValueKind::time: return when(is_time(text));
    case ValueKind::pair: return when(text.find('=') != text.npos && !text.starts_with('='));
    case ValueKind::address:
      if (parse_whole_number(text)) value = "127.0.0.1:" + value;
      return when(parse_address(value).has_value());
    case ValueKind::boolean: {
      std::optional<bool> on = parse_boolean(text);
      if (!on) return std::nullopt;
      return *on ? "true" : "false";
    }
    case ValueKind::one_of: {
      auto known = alternatives(type.shown);
      return when(std::find(known.begin(), known.end(), text) != known.end());
    }
  }
  return std::nullopt;
}

std::string allowed_values(const ValueType& type) {
  switch (type.kind) {
    case ValueKind::nothing: return "no value";
    case ValueKind::boolean: return "true or false";
    case ValueKind::text:
    case ValueKind::secret: return "a text";
    case ValueKind::path: return "the path of a file or folder";
    case ValueKind::number: return "a whole number";
    case ValueKind::seconds: return "a number of seconds, such as 5 or 0.5";
    case ValueKind::bytes: return "a number of bytes such as 256MiB or 1GiB";
    case ValueKind::duration: return "a duration such as 500ms, 10s or 5m";
    case ValueKind::address: return "an address such as 127.0.0.1:8080 or :8080";
    case ValueKind::server:
      return "HOST:PORT or a URL, such as 127.0.0.1:8080 or https://pawl.example";
    case ValueKind::time: return "a time such as 2026-01-31T12:00:00Z";
    case ValueKind::pair: return std::string(type.shown);
    case ValueKind::one_of: break;
  }
  auto known = alternatives(type.shown);
  std::string out;
  for (size_t i = 0; i < known.size(); ++i) {
    if (i > 0) out += i + 1 == known.size() ? " or " : ", ";
    out += known[i];
  }
  return out;
}

std::string suggestion(std::string_view name, std::span<const std::string_view> names,
                       std::string_view mark) {
  auto best = std::min_element(names.begin(), names.end(), [&](auto a, auto b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  const size_t max_distance = name.size() / 3 + 1;
  if (best == names.end() || edit_distance(name, *best) > max_distance) return {};
  return "; did you mean " + std::string(mark) + std::string(*best) + "?";
}

}  // namespace pawl::server

#include "faces/processes/definition/limit.h"

#include <charconv>

#include "faces/processes/definition/fields.h"
#include "faces/processes/definition/shapes.h"
#include "faces/processes/limits.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

using Problems = std::vector<std::string>;

// A count from 1 to `max`, or 0 when the member is absent or wrong.
uint32_t read_count(const json::Value& v, std::string_view name, int64_t max,
                    const std::string& where, Problems& broken) {
  const json::Value* given = v.find(name);
  if (!given || given->is_null()) return 0;
  auto count = given->is_number() ? given->as_int64() : std::nullopt;
  if (count && *count >= 1 && *count <= max) return static_cast<uint32_t>(*count);
  broken.push_back(where + "." + std::string(name) + " must be an integer from 1 to " +
                   std::to_string(max) + ", got " + json::print(*given));
  return 0;
}

// "10/s", "100/m", "5/h": the time between two jobs. 0 when the text is not a rate.
Time interval_of(std::string_view text) {
  constexpr std::pair<std::string_view, Time> units[] = {
      {"/s", kSecond}, {"/m", 60 * kSecond}, {"/h", 3600 * kSecond}};
  int64_t count = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failed != std::errc() || count < 1 || count > kMaxRate) return 0;
  std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  for (const auto& [unit, period] : units)
    if (rest == unit) return period / count;
  return 0;
}

}  // namespace

std::optional<Limit> read_limit(const json::Value& v, const std::string& where, Problems& problems,
                                Problems& broken) {
  const std::string at = where + " limit";
  if (!document_fields::check(v, document::kLimit, at, problems)) return std::nullopt;
  Limit out;
  out.name = v.string_or("name");
  if (out.name.size() > kNameBytes)
    broken.push_back(at + ".name must have at most " + std::to_string(kNameBytes) + " bytes");
  out.concurrent = read_count(v, "concurrent", kMaxConcurrent, at, broken);
  if (std::string_view rate = v.string_or("rate"); !rate.empty()) {
    out.interval = interval_of(rate);
    if (!out.interval)
      broken.push_back(at + ".rate \"" + std::string(rate) +
                       "\" is not a rate such as \"10/s\", \"100/m\" or \"5/h\" (1 to " +
                       std::to_string(kMaxRate) + ")");
  }
  if (uint32_t burst = read_count(v, "burst", kMaxRate, at, broken)) out.burst = burst;
  if (v.find("burst") && !v.find("rate")) broken.push_back(at + ".burst needs a rate");
  if (!v.find("concurrent") && !v.find("rate"))
    broken.push_back(at + " needs concurrent, rate or both");
  if (std::string_view key = v.string_or("key"); !key.empty()) {
    out.key.emplace(key);
    if (const Error* problem = out.key->problem())
      broken.push_back(at + ".key is not an expression: " + problem->message);
  }
  return out;
}

std::optional<std::string> key_text(const json::Value& v) {
  if (v.is_string()) return v.string();
  if (v.is_null()) return std::string();
  if (v.is_array() || v.is_object()) return std::nullopt;
  return json::print(v);
}

Result<LimitUse> limit_use(const Limit& limit, const json::Object& variables, Time now,
                           size_t& work) {
  LimitUse use{limit.scope, "", limit.concurrent, limit.interval, limit.burst};
  if (!limit.key) return use;
  auto value = limit.key->evaluate(variables, now, &work);
  if (!value)
    return fail(Code::invalid, value.error().reason, "limit.key: " + value.error().message);
  auto text = key_text(*value);
  if (!text)
    return fail(Code::invalid, "LimitKeyInvalid",
                "LimitKeyInvalid: limit.key must be text, a number or a boolean, got " +
                    std::string(value->kind_name()));
  if (text->size() > kLimitKeyBytes)
    return fail(Code::invalid, "LimitKeyInvalid",
                "LimitKeyInvalid: the value of limit.key may have " +
                    std::to_string(kLimitKeyBytes) + " bytes, got " + std::to_string(text->size()));
  use.key = std::move(*text);
  return use;
}

}  // namespace pawl::processes

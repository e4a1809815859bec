#include "wire/body_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "json/text.h"

namespace pawl::wire {
namespace {

// Texts in messages are cut: a caller may send megabytes.
constexpr size_t kShownBytes = 80;

std::string_view with_article(const json::Value& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  return value.is_array() ? "an array" : "an object";
}

std::unexpected<Error> refusal(const BodyRules& rules, std::string message) {
  return fail(Code::invalid, std::string(rules.reason), std::string(rules.lead) + message);
}

}  // namespace

const json::Value* MemberReader::find(std::string_view name) const {
  const json::Value* found = object_->find(name);
  if (!found && rules_.ignores_name_case && object_->is_object()) {
    for (const json::Member& member : object_->object()) {
      if (!same_name(member.name, name)) continue;
      found = &member.value;
      break;
    }
  }
  return found && !found->is_null() ? found : nullptr;
}

std::unexpected<Error> MemberReader::refuse(std::string message) const {
  return refusal(rules_, std::move(message));
}

std::unexpected<Error> MemberReader::wrong_type(std::string_view name, std::string_view wants,
                                                const json::Value& got) const {
  return refuse(fmt::format("'{}' must be {}, not {}", name, wants, with_article(got)));
}

Result<std::string> MemberReader::text(std::string_view name,
                                       std::string_view default_value) const {
  const json::Value* v = find(name);
  if (!v) return std::string(default_value);
  if (v->is_string()) return v->string();
  if (!rules_.not_text.empty()) return refuse(fmt::format("'{}' {}", name, rules_.not_text));
  return wrong_type(name, "a string", *v);
}

Result<std::string> MemberReader::required_text(std::string_view name) const {
  TRY(std::string found, text(name));
  if (found.empty()) return refuse(fmt::format("'{}' is missing: give a string", name));
  return found;
}

Result<int64_t> MemberReader::integer(std::string_view name, int64_t default_value) const {
  const json::Value* v = find(name);
  if (!v) return default_value;
  const std::optional<int64_t> number = v->is_number() ? v->as_int64() : std::nullopt;
  if (!number) return wrong_type(name, "an integer", *v);
  return *number;
}

Result<std::optional<uint64_t>> MemberReader::count(std::string_view name) const {
  const json::Value* v = find(name);
  if (!v) return std::optional<uint64_t>();
  const std::optional<uint64_t> number = v->is_number() ? v->as_uint64() : std::nullopt;
  if (!number) return refuse(fmt::format("'{}' must be a whole number from 0 on", name));
  return number;
}

Result<bool> MemberReader::flag(std::string_view name, bool default_value) const {
  const json::Value* v = find(name);
  if (!v) return default_value;
  if (!v->is_bool()) return wrong_type(name, "a boolean", *v);
  return v->boolean();
}

Result<std::vector<std::string>> MemberReader::texts(std::string_view name) const {
  const json::Value* v = find(name);
  std::vector<std::string> out;
  if (!v) return out;
  if (!v->is_array()) return wrong_type(name, "an array of strings", *v);
  for (const json::Value& item : v->array()) {
    if (!item.is_string())
      return refuse(fmt::format("'{}' must be an array of strings, but it holds {}", name,
                                with_article(item)));
    out.push_back(item.string());
  }
  return out;
}

Result<std::string> MemberReader::choice(const Member& row) const {
  TRY(std::string found, text(row.name, *row.choices.begin()));
  if (std::find(row.choices.begin(), row.choices.end(), found) != row.choices.end()) return found;
  std::string all;
  for (std::string_view one : row.choices)
    all += (all.empty() ? "" : " or ") + std::string(one);
  return refuse(
      fmt::format("'{}' must be {}, not '{}'", row.name, all, found.substr(0, kShownBytes)));
}

Result<const json::Value*> MemberReader::object(std::string_view name) const {
  const json::Value* v = find(name);
  if (v && !v->is_object()) return wrong_type(name, "an object", *v);
  return v;
}

static bool is_empty(const Request& request, const BodyRules& rules) {
  if (!rules.blank_is_empty) return request.body.empty();
  return request.body.find_first_not_of(" \t\r\n") == std::string::npos;
}

Result<json::Value> BodyReader::value_of(const Request& request, const BodyRules& rules) {
  if (request.body.size() > rules.max_bytes)
    return fail(Code::too_large, std::string(rules.reason),
                fmt::format("{}the body has {} bytes; {} are allowed", rules.lead,
                            request.body.size(), rules.max_bytes));
  if (rules.empty_is_object && is_empty(request, rules)) return json::Value(json::Object{});
  Result<json::Value> parsed = json::parse(request.body, {.prefix = rules.ignores_trailing});
  if (!parsed)
    return fail(Code::invalid, std::string(rules.reason),
                std::string(rules.not_json) + parsed.error().message);
  if (parsed->is_null() && rules.null_is_object) return json::Value(json::Object{});
  return parsed;
}

Result<BodyReader> BodyReader::of(const Request& request, const BodyRules& rules) {
  if (!rules.empty_is_object && is_empty(request, rules))
    return refusal(rules, "the body must be a JSON object, but it is empty");
  TRY(json::Value value, value_of(request, rules));
  if (!value.is_object())
    return refusal(rules,
                   fmt::format("the body must be a JSON object, not {}", with_article(value)));
  return BodyReader(std::move(value), rules);
}

// The base keeps the address of `owned_`, so it may be given before `owned_` is made.
BodyReader::BodyReader(json::Value object, const BodyRules& rules)
    : MemberReader(owned_, rules), owned_(std::move(object)) {
  CHECK(owned_.is_object());
}

BodyReader::BodyReader(BodyReader&& other) noexcept
    : MemberReader(owned_, other.rules()), owned_(std::move(other.owned_)) {}

Result<json::Object> BodyReader::take_object(std::string_view name) {
  TRY(const json::Value* found, object(name));
  if (!found) return json::Object{};
  // The object belongs to this reader, which is not const here.
  return std::move(const_cast<json::Value*>(found)->object());
}

}  // namespace pawl::wire

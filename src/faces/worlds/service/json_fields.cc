#include "faces/worlds/service/json_fields.h"

#include <algorithm>

#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {

std::unexpected<Error> bad_request(std::string why) {
  return fail(Code::invalid, "invalid_request", std::move(why));
}

// Null stands for absent: clients in typed languages send null for members that they do not set.
static const json::Value* given(const json::Value& body, std::string_view name) {
  const json::Value* v = body.find(name);
  return v && !v->is_null() ? v : nullptr;
}

Result<std::string> text_field(const json::Value& body, std::string_view name,
                               std::string_view default_value) {
  const json::Value* v = given(body, name);
  if (!v) return std::string(default_value);
  if (!v->is_string()) return bad_request("'" + std::string(name) + "' is text");
  return v->string();
}

Result<std::optional<uint64_t>> number_field(const json::Value& body, std::string_view name) {
  const json::Value* v = given(body, name);
  if (!v) return std::optional<uint64_t>();
  auto number = v->is_number() ? v->as_uint64() : std::nullopt;
  if (!number) return bad_request("'" + std::string(name) + "' is a whole number from 0 on");
  return number;
}

Result<std::string> choice_field(const json::Value& body, std::string_view name,
                                 std::initializer_list<std::string_view> choices) {
  TRY(std::string text, text_field(body, name, *choices.begin()));
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  std::string all;
  for (std::string_view choice : choices)
    all += (all.empty() ? "" : " or ") + std::string(choice);
  return bad_request("'" + std::string(name) + "' is " + all + ", not '" + text.substr(0, 80) +
                     "'");
}

// The peer's clients write bytes as lists of numbers; base64 is Pawl's own form.
Result<std::optional<Bytes>> bytes_field(const json::Value& body, std::string_view name) {
  const json::Value* v = body.find(name);
  if (!v || v->is_null()) return std::optional<Bytes>();
  if (v->is_string()) {
    TRY(Bytes bytes, unbase64(v->string()));
    return std::optional<Bytes>(std::move(bytes));
  }
  auto bytes = octets_of(to_cbor(*v));
  if (!bytes)
    return bad_request("'" + std::string(name) +
                       "' is base64 text, or a list of numbers from 0 to 255");
  return bytes;
}

}  // namespace pawl::worlds

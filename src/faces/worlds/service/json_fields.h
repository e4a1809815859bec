#pragma once
// Members of JSON bodies. A member that is null counts as absent; one of the wrong type is refused,
// never ignored.

#include "base/bytes.h"
#include "json/value.h"

namespace pawl::worlds {

std::unexpected<Error> bad_request(std::string why);
Result<std::string> text_field(const json::Value& body, std::string_view name,
                               std::string_view default_value = {});
Result<std::optional<uint64_t>> number_field(const json::Value& body, std::string_view name);
// Text that is one of `choices`; the first one is the default.
Result<std::string> choice_field(const json::Value& body, std::string_view name,
                                 std::initializer_list<std::string_view> choices);
// Base64 text or a list of numbers.
Result<std::optional<Bytes>> bytes_field(const json::Value& body, std::string_view name);

}  // namespace pawl::worlds

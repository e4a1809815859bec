#pragma once
// Bytes in JSON, and the refusal of what cannot be read. HTTP reads all other members with
// wire::MemberReader.

#include "base/bytes.h"
#include "json/value.h"

namespace pawl::worlds {

std::unexpected<Error> bad_request(std::string why);
// Base64 text or a list of numbers; nothing when the member is absent or null.
Result<std::optional<Bytes>> bytes_field(const json::Value& body, std::string_view name);

}  // namespace pawl::worlds

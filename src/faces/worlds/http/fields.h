#pragma once
// Bodies and queries of requests.

#include "faces/worlds/http/shapes.h"
#include "faces/worlds/service/json_fields.h"
#include "wire/body_reader.h"

namespace pawl::worlds {

inline constexpr wire::BodyRules kBody{
    .reason = "invalid_request", .not_text = "is text", .blank_is_empty = false};

Result<wire::BodyReader> body_of(const wire::Request& request);  // {} when there is no body
// Members of an object in a body.
inline wire::MemberReader members_of(const json::Value& object) { return {object, kBody}; }
// Kinds given as kind=a&kind=b or as kinds=a,b; empty: all.
std::vector<std::string> kinds_of(const wire::Request& request);
// A number of the query, no more than `max`; without it the default of its row, or 0.
Result<uint64_t> query_number(const wire::Request& request, const wire::Member& row, uint64_t max);

}  // namespace pawl::worlds

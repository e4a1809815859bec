#pragma once
// Bodies and queries of requests.

#include "faces/worlds/service/json_fields.h"
#include "wire/message.h"

namespace pawl::worlds {

Result<json::Value> body_of(const wire::Request& request);  // an object; {} when there is no body
// Kinds given as kind=a&kind=b or as kinds=a,b; empty: all.
std::vector<std::string> kinds_of(const wire::Request& request);
// A number of the query, no more than `max`.
Result<uint64_t> query_number(const wire::Request& request, std::string_view name,
                              uint64_t default_value, uint64_t max);

}  // namespace pawl::worlds

#include "faces/worlds/http/fields.h"

#include <algorithm>

#include "faces/worlds/store/reads.h"

namespace pawl::worlds {

Result<wire::BodyReader> body_of(const wire::Request& request) {
  return wire::BodyReader::of(request, kBody);
}

std::vector<std::string> kinds_of(const wire::Request& request) {
  std::vector<std::string> out = request.query_params(http::kKindsQuery["kind"]);
  const std::string list = request.query_param(http::kKindsQuery["kinds"]).value_or("");
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Result<uint64_t> query_number(const wire::Request& request, const wire::Member& row, uint64_t max) {
  auto text = request.query_param(row);
  if (!text) return static_cast<uint64_t>(row.default_integer.value_or(0));
  auto number = whole_number(*text);
  if (!number)
    return bad_request(std::string(row.name) + " is a whole number, not '" + text->substr(0, 80) +
                       "'");
  return std::min(*number, max);
}

}  // namespace pawl::worlds

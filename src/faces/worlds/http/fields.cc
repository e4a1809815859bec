#include "faces/worlds/http/fields.h"

#include <algorithm>

#include "faces/worlds/store/reads.h"

namespace pawl::worlds {

Result<wire::BodyReader> body_of(const wire::Request& request) {
  return wire::BodyReader::of(request, kBody);
}

std::vector<std::string> kinds_of(const wire::Request& request) {
  std::vector<std::string> out = request.query_params("kind");
  const std::string list = request.query_param("kinds").value_or("");
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Result<uint64_t> query_number(const wire::Request& request, std::string_view name,
                              uint64_t default_value, uint64_t max) {
  auto text = request.query_param(name);
  if (!text) return default_value;
  auto number = whole_number(*text);
  if (!number)
    return bad_request(std::string(name) + " is a whole number, not '" + text->substr(0, 80) + "'");
  return std::min(*number, max);
}

}  // namespace pawl::worlds

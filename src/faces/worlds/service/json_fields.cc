#include "faces/worlds/service/json_fields.h"

#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {

std::unexpected<Error> bad_request(std::string why) {
  return fail(Code::invalid, "invalid_request", std::move(why));
}

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

// Payloads in the envelope of the peer: {"inline_cbor": bytes}, or {"cbor_ref": hash} with an
// optional size and hash for a blob in the store.

#include <algorithm>

#include "faces/worlds/service/json_fields.h"
#include "faces/worlds/service/service.h"

namespace pawl::worlds {

bool is_payload_envelope(const json::Value& value) {
  if (!value.is_object() || !(value.find("inline_cbor") || value.find("cbor_ref"))) return false;
  // A payload that has further members is no envelope but the value itself.
  return std::all_of(value.object().begin(), value.object().end(), [](const json::Member& m) {
    return m.name == "inline_cbor" || m.name == "cbor_ref" || m.name == "cbor_size" ||
           m.name == "cbor_sha256";
  });
}

Result<Bytes> open_payload(const json::Value& envelope, const FindBlob& blob) {
  TRY(std::optional<Bytes> given, bytes_field(envelope, "inline_cbor"));
  const json::Value* found = envelope.find("cbor_ref");
  if (found && !found->is_null() && !found->is_string()) return bad_request("'cbor_ref' is text");
  const std::string_view ref = envelope.string_or("cbor_ref");
  // Exactly one of the two. cbor_size and cbor_sha256 are not checked: the store checks the digest.
  if (given.has_value() != ref.empty())
    return bad_request("a payload has inline_cbor, or cbor_ref with cbor_size and cbor_sha256");
  if (given) return *std::move(given);
  TRY(Bytes digest, parse_hash(ref));
  return blob(digest);
}

}  // namespace pawl::worlds

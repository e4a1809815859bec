#pragma once
// What the peer's clients read and write beside the plain forms: bytes as lists of numbers, payloads in an
// envelope, variants by their tag, and the members of a world that its pages are made of.

#include <functional>

#include "faces/worlds/air/manifest.h"
#include "faces/worlds/keys.h"
#include "faces/worlds/model.h"
#include "json/value.h"
#include "kernel/door.h"

namespace pawl::worlds {

// Base64 text, or a list of numbers; nothing when it is absent or null.
Result<std::optional<Bytes>> bytes_field(const json::Value& body, std::string_view name);

// A blob of the store by its digest.
using FindBlob = std::function<Result<Bytes>(BytesView digest)>;

// {"inline_cbor": bytes}, or {"cbor_ref": hash, ...} for bytes in the store.
bool is_payload_envelope(const json::Value& value);
Result<Bytes> open_payload(const json::Value& envelope, const FindBlob& blob);
json::Value payload_envelope(BytesView cbor);

// The arm of {"$tag": arm, ...} in the schema's spelling: PatchBlobRef and patch_blob_ref are one.
std::string arm_of(std::string_view tag);

// One arm of sys/GovPatchInput@1: the bytes it leads to, and whether they are a patch document in JSON.
struct PatchInput {
  Bytes bytes;
  bool document = false;
};
Result<PatchInput> open_patch(const cbor::Value& input, const FindBlob& blob);

json::Value runtime_json(const World& world, const Head& head);
// The snapshot that the world would be restored from.
Result<json::Value> baseline_json(const Look& look, const Place& place, const World& world);
json::Value summary_json(const Manifest& manifest);
json::Value cell_json(const Head& head, const std::string& workflow, BytesView key, const Instance& instance);

// The world's own universe: there is one.
inline constexpr std::string_view kUniverse = "00000000-0000-0000-0000-000000000000";

}  // namespace pawl::worlds

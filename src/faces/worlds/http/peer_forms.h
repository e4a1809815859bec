#pragma once
// What the peer's clients read and write beside the plain forms: bytes as lists of numbers,
// payloads in an envelope, and the members of a world that its pages are made of.

#include "faces/worlds/air/patch.h"
#include "faces/worlds/store/keys.h"
#include "faces/worlds/store/model.h"
#include "json/value.h"
#include "kernel/access.h"

namespace pawl::worlds {

// Base64 text, or a list of numbers; nothing when it is absent or null.
Result<std::optional<Bytes>> bytes_field(const json::Value& body, std::string_view name);

// {"inline_cbor": bytes}, or {"cbor_ref": hash, ...} for bytes in the store.
bool is_payload_envelope(const json::Value& value);
Result<Bytes> open_payload(const json::Value& envelope, const FindBlob& blob);
json::Value payload_envelope(BytesView cbor);

json::Value runtime_json(const World& world, const WorldHead& head);
// The snapshot that the world would be restored from.
Result<json::Value> baseline_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                  const World& world);
json::Value summary_json(const Manifest& manifest);
json::Value cell_json(const WorldHead& head, const std::string& workflow, BytesView key,
                      const Instance& instance);

// The world's own universe: there is one.
inline constexpr std::string_view kUniverse = "00000000-0000-0000-0000-000000000000";

}  // namespace pawl::worlds

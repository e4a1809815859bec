#pragma once
// JSON that the peer's clients read beside our own: payloads in an envelope, and the members that
// their pages of a world are made of.

#include "faces/worlds/air/manifest.h"
#include "faces/worlds/store/keys.h"
#include "faces/worlds/store/model.h"
#include "json/value.h"
#include "kernel/access.h"

namespace pawl::worlds {

// {"inline_cbor": bytes}.
json::Value payload_envelope(BytesView cbor);

json::Value runtime_json(const World& world, const WorldHead& head);
// The snapshot that the world would be restored from.
Result<json::Value> baseline_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                  const World& world);
json::Value summary_json(const Manifest& manifest);
json::Value cell_json(const WorldHead& head, const std::string& workflow, BytesView key,
                      const Instance& instance);

// The peer's worlds lie in universes. Here there is one.
inline constexpr std::string_view kUniverse = "00000000-0000-0000-0000-000000000000";

}  // namespace pawl::worlds

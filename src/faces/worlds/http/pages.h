#pragma once
// Parts of JSON answers that several routes share.

#include "faces/worlds/store/keys.h"
#include "faces/worlds/store/model.h"
#include "json/value.h"
#include "kernel/access.h"

namespace pawl::worlds {

json::Value quiescence_json(const WorldHead& head);
json::Value meta_json(const World& world, const WorldHead& head);  // which moment a read is of
// Open intents and instances, at most `limit`.
Result<json::Array> pending_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                 const WorldHead& head, size_t limit);
Result<json::Array> instances_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                   const WorldHead& head, size_t limit);
json::Value bytes_json(const std::optional<Bytes>& value);  // decoded CBOR, or null

}  // namespace pawl::worlds

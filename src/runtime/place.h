#pragma once
// Where things live in a store of several shards. The number of shards is fixed when the store is
// made, and this function never changes: it is part of the format (docs/formats/data.md).

#include <cstdint>
#include <string_view>

namespace pawl {

// One shard of a store.
struct Place {
  uint32_t shard = 0;
  uint32_t shards = 1;
};

// The shard of everything that belongs to a tenant: the CRC32C of its name, modulo the number.
uint32_t shard_of(std::string_view tenant, uint32_t shards);

}  // namespace pawl

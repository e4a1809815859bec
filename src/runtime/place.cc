#include "runtime/place.h"

#include "base/hash.h"

namespace pawl {

uint32_t shard_of(std::string_view tenant, uint32_t shards) {
  return shards == 1 ? 0 : crc32c(tenant) % shards;
}

}  // namespace pawl

#pragma once
// The two checksums of the house: CRC32C against accidents, SHA-256 where a name or a chain
// depends on it.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace pawl {

uint32_t crc32c(BytesView bytes, uint32_t seed = 0);

using Digest = std::array<uint8_t, 32>;
Digest sha256(BytesView bytes);
Digest sha256(BytesView first, BytesView second);  // of the two, one after the other
inline BytesView view(const Digest& d) {
  return {reinterpret_cast<const char*>(d.data()), d.size()};
}

// Fast, not for anything written: hash tables and shard choice.
uint64_t quick_hash(BytesView bytes);

}  // namespace pawl

#pragma once
// The three hash functions: CRC32C detects damaged bytes, SHA-256 names content and chains
// records, quick_hash serves hash tables.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace pawl {

// To continue over further bytes, pass the result so far as `seed`.
uint32_t crc32c(BytesView bytes, uint32_t seed = 0);

using Digest = std::array<uint8_t, 32>;
Digest sha256(BytesView bytes);
Digest sha256(BytesView first, BytesView second);  // of `first` followed by `second`
inline BytesView view(const Digest& d) {
  return {reinterpret_cast<const char*>(d.data()), d.size()};
}

// Fast and not cryptographic, for hash tables in memory. Never stored.
uint64_t quick_hash(BytesView bytes);

}  // namespace pawl

#include "base/hash.h"

#include <openssl/sha.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace pawl {

// Bit by bit, with the reflected Castagnoli polynomial. For processors without SSE 4.2.
static uint32_t crc32c_plain(uint32_t crc, const unsigned char* p, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    crc ^= p[i];
    for (int k = 0; k < 8; ++k)
      crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse(uint32_t crc, const unsigned char* p,
                                                             size_t n) {
  uint64_t wide = crc;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; n; --n, ++p)
    crc = _mm_crc32_u8(crc, *p);
  return crc;
}
#endif

// The standard inverts the register before and after. A result that is passed as `seed` is inverted
// back, which continues the computation.
uint32_t crc32c(BytesView bytes, uint32_t seed) {
  auto p = reinterpret_cast<const unsigned char*>(bytes.data());
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~crc32c_sse(~seed, p, bytes.size());
#endif
  return ~crc32c_plain(~seed, p, bytes.size());
}

Digest sha256(BytesView bytes) { return sha256(bytes, {}); }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
// Every frame is hashed. The EVP interface allocates a context on each call, so this uses the
// deprecated one, which does not.
Digest sha256(BytesView first, BytesView second) {
  Digest out;
  SHA256_CTX ctx;
  SHA256_Init(&ctx);
  SHA256_Update(&ctx, first.data(), first.size());
  SHA256_Update(&ctx, second.data(), second.size());
  SHA256_Final(out.data(), &ctx);
  return out;
}
#pragma GCC diagnostic pop

// FNV-1a over words of eight bytes, with a stronger multiplier and shifts that spread the high
// bits. The last bytes are taken one by one.
uint64_t quick_hash(BytesView bytes) {
  uint64_t h = 0xcbf29ce484222325u ^ bytes.size();
  const char* p = bytes.data();
  size_t n = bytes.size();
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  for (; n; --n, ++p)
    h = (h ^ static_cast<uint8_t>(*p)) * 0x100000001b3u;
  return h ^ h >> 29;
}

}  // namespace pawl

#include "base/dice.h"

#include <openssl/sha.h>

#include "base/bytes.h"

namespace pawl {

// splitmix64 over a counter: unlike xoroshiro128+ it works with every seed, zero included.
uint64_t Dice::next() {
  state_[0] += 0x9e3779b97f4a7c15u;
  uint64_t z = state_[0] ^ state_[1];
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Hyphens stand before the digits 8, 12, 16 and 20, counted from 0; the string is filled with
// hyphens in advance.
static std::string format_uuid(uint64_t hi, uint64_t lo) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out(36, '-');
  size_t at = 0;
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) ++at;
    uint64_t word = i < 16 ? hi : lo;
    out[at++] = digits[word >> (60 - 4 * (i % 16)) & 15];
  }
  return out;
}

// The two top bits of the lower half are 10 in every UUID of RFC 4122. The version is the digit
// that the masks 0xf000 and 0x4000, 0x5000, 0x7000 set in the upper half.
static constexpr uint64_t kVariant = 0x8000000000000000u;
static constexpr uint64_t kVariantMask = 0x3fffffffffffffffu;

std::string Dice::uuid4() {
  uint64_t hi = next();
  uint64_t lo = next();
  return format_uuid((hi & ~0xf000ull) | 0x4000, (lo & kVariantMask) | kVariant);
}

// 48 bits of milliseconds, then the fraction of the millisecond in 12 bits: ids of one millisecond
// sort by time too.
std::string Dice::uuid7(Time now) {
  uint64_t ms = static_cast<uint64_t>(now / kMillisecond);
  uint64_t sub = static_cast<uint64_t>(now % kMillisecond) * 4096 / kMillisecond;
  return format_uuid(ms << 16 | 0x7000 | sub, (next() & kVariantMask) | kVariant);
}

// Version 1 counts 100 ns ticks since 1582-10-15. The node has its multicast bit set, which marks
// it as random.
std::string Dice::uuid1(Time now) {
  uint64_t ticks = static_cast<uint64_t>(now / 100) + 0x01b21dd213814000ull;
  uint64_t hi =
      (ticks & 0xffffffff) << 32 | (ticks >> 32 & 0xffff) << 16 | 0x1000 | (ticks >> 48 & 0xfff);
  return format_uuid(hi, (next() & kVariantMask) | kVariant | 0x010000000000ull);
}

// Ten digits of time, then 16 random digits of five bits each: 40 bits of each of two draws.
std::string Dice::ulid(Time now) {
  static constexpr char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  uint64_t ms = static_cast<uint64_t>(now / kMillisecond) & 0xffffffffffffull;
  std::string out(26, '0');
  for (int i = 9; i >= 0; --i, ms >>= 5)
    out[i] = digits[ms & 31];
  uint64_t high = next();
  uint64_t low = next();
  for (int i = 17; i >= 10; --i, high >>= 5)
    out[i] = digits[high & 31];
  for (int i = 25; i >= 18; --i, low >>= 5)
    out[i] = digits[low & 31];
  return out;
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < 36; ++i) {
    bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen ? text[i] != '-' : !isxdigit(static_cast<unsigned char>(text[i]))) return false;
  }
  return true;
}

// A `space` that is not a UUID counts as empty. Callers pass constants.
std::string uuid5(std::string_view space, std::string_view name) {
  Bytes input;
  std::string digits;
  for (char c : space)
    if (c != '-') digits.push_back(c);
  if (auto raw = unhex(digits)) input = *raw;
  input.append(name);
  unsigned char sum[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(input.data()), input.size(), sum);
  BytesView view(reinterpret_cast<const char*>(sum), 16);
  uint64_t hi = read_ordered64(view);
  uint64_t lo = read_ordered64(view.substr(8));
  return format_uuid((hi & ~0xf000ull) | 0x5000, (lo & kVariantMask) | kVariant);
}

}  // namespace pawl

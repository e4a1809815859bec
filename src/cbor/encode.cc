#include <algorithm>
#include <bit>
#include <cmath>

#include "cbor/cbor.h"

namespace pawl::cbor {
namespace {

void append_big_endian(Bytes& out, uint64_t v, int bytes) {
  for (int i = bytes - 1; i >= 0; --i)
    out.push_back(static_cast<char>(v >> (8 * i)));
}

// The shortest head: below 24 the number is in the first byte, else it follows in 1, 2, 4 or 8
// bytes.
void append_head(Bytes& out, uint8_t major, uint64_t n) {
  const char top = static_cast<char>(major << 5);
  if (n < 24) {
    out.push_back(static_cast<char>(top | static_cast<char>(n)));
    return;
  }
  const int log_size = n < 0x100 ? 0 : n < 0x10000 ? 1 : n < 0x100000000 ? 2 : 3;
  out.push_back(static_cast<char>(top | (24 + log_size)));
  append_big_endian(out, n, 1 << log_size);
}

// The half-precision bits of a float, when half precision holds it exactly: the 13 bits that a half
// does not have must be zero.
std::optional<uint16_t> as_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127;
  const uint32_t fraction = bits & 0x7fffff;
  if (exponent == 128) {  // infinity or NaN
    if (fraction & 0x1fff) return {};
    return static_cast<uint16_t>(sign | 0x7c00 | fraction >> 13);
  }
  if ((bits & 0x7fffffff) == 0) return sign;
  if (exponent >= -14 && exponent <= 15) {
    if (fraction & 0x1fff) return {};
    return static_cast<uint16_t>(sign | (exponent + 15) << 10 | fraction >> 13);
  }
  if (exponent < -14 && exponent >= -24) {  // a subnormal half
    const uint32_t whole = fraction | 0x800000;
    const int shift = -exponent - 14 + 13;
    if (whole & ((1u << shift) - 1)) return {};
    return static_cast<uint16_t>(sign | whole >> shift);
  }
  return {};
}

// Writes the smallest of the three widths that holds the value exactly. Every NaN gives the same
// bytes.
void append_real(Bytes& out, double v) {
  if (std::isnan(v)) {
    out.append("\xf9\x7e\x00", 3);
    return;
  }
  const float narrow = static_cast<float>(v);
  if (static_cast<double>(narrow) != v) {
    out.push_back('\xfb');
    append_big_endian(out, std::bit_cast<uint64_t>(v), 8);
  } else if (auto half = as_half(narrow)) {
    out.push_back('\xf9');
    append_big_endian(out, *half, 2);
  } else {
    out.push_back('\xfa');
    append_big_endian(out, std::bit_cast<uint32_t>(narrow), 4);
  }
}

void append_value(Bytes& out, const Value& value, bool sorted);

// Keys are sorted by their encoded bytes, so each key is encoded once. The sort is stable: equal
// keys stay in the order of the map, and the last one is found at the end of its run.
void append_sorted_map(Bytes& out, const Map& map) {
  std::vector<std::pair<Bytes, const Value*>> entries;
  entries.reserve(map.size());
  for (const auto& [key, item] : map) {
    Bytes bytes;
    append_value(bytes, key, true);
    entries.emplace_back(std::move(bytes), &item);
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return key_before(a.first, b.first); });
  size_t kept = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool repeated = i + 1 < entries.size() && entries[i].first == entries[i + 1].first;
    if (repeated) continue;  // the last of equal keys is kept
    if (kept != i) entries[kept] = std::move(entries[i]);
    ++kept;
  }
  append_head(out, 5, kept);
  for (size_t i = 0; i < kept; ++i) {
    out += entries[i].first;
    append_value(out, *entries[i].second, true);
  }
}

void append_value(Bytes& out, const Value& value, bool sorted) {
  switch (value.kind()) {
    case Kind::null: out.push_back('\xf6'); return;
    case Kind::boolean: out.push_back(value.boolean() ? '\xf5' : '\xf4'); return;
    case Kind::integer:
      append_head(out, value.integer().negative ? 1 : 0, value.integer().magnitude);
      return;
    case Kind::real: append_real(out, value.real()); return;
    case Kind::bytes:
      append_head(out, 2, value.bytes().size());
      out += value.bytes();
      return;
    case Kind::text:
      append_head(out, 3, value.text().size());
      out += value.text();
      return;
    case Kind::array:
      append_head(out, 4, value.array().size());
      for (const Value& item : value.array())
        append_value(out, item, sorted);
      return;
    case Kind::map:
      if (sorted) return append_sorted_map(out, value.map());
      append_head(out, 5, value.map().size());
      for (const auto& [key, item] : value.map()) {
        append_value(out, key, false);
        append_value(out, item, false);
      }
      return;
  }
}

}  // namespace

void append(Bytes& out, const Value& value) { append_value(out, value, false); }

// The length is that of the whole encoded key. This is the order of RFC 7049, section 3.9, within
// one major type; worlds hash these bytes, so it may never change.
bool key_before(BytesView a, BytesView b) {
  const int major_a = static_cast<uint8_t>(a[0]) >> 5;
  const int major_b = static_cast<uint8_t>(b[0]) >> 5;
  if (major_a != major_b) return major_a < major_b;
  if (a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

Bytes encode(const Value& value) {
  Bytes out;
  append_value(out, value, false);
  return out;
}

void append_canonical(Bytes& out, const Value& value) { append_value(out, value, true); }

Bytes canonical(const Value& value) {
  Bytes out(kSelfDescribed);
  append_value(out, value, true);
  return out;
}

Digest hash_of(const Value& value) { return sha256(canonical(value)); }

Out& Out::head(uint8_t major, uint64_t n) {
  append_head(to_, major, n);
  return *this;
}

// Trees of digests run to megabytes, so this appends 32 bytes of a digest at once. Each becomes one
// or two bytes of CBOR.
Out& Out::digest_array(BytesView digest) {
  array(digest.size());
  char piece[64];
  while (!digest.empty()) {
    const BytesView some = digest.substr(0, sizeof piece / 2);
    size_t n = 0;
    for (char c : some) {
      if (static_cast<uint8_t>(c) >= 24) piece[n++] = 0x18;
      piece[n++] = c;
    }
    raw({piece, n});
    digest.remove_prefix(some.size());
  }
  return *this;
}

}  // namespace pawl::cbor

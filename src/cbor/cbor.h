#pragma once
// Encoding and decoding of CBOR (RFC 8949).
//
// decode() accepts any well-formed value: integers of any width, indefinite lengths, tags.
// encode() writes the shortest form of every head and keeps the order of maps.
// canonical() gives the same bytes for equal values, so the bytes can be hashed. It also sorts map
// keys (by major type, then by length, then bytewise), keeps the last of equal keys, and begins
// with the self-describing tag d9d9f7.

#include "base/hash.h"
#include "base/result.h"
#include "cbor/value.h"

namespace pawl::cbor {

inline constexpr BytesView kSelfDescribed{"\xd9\xd9\xf7", 3};
// Nesting of a value. The decoder recurses, so this bounds its stack; deeper values are refused.
inline constexpr size_t kDepth = 256;

// Errors: BAD_CBOR. The contract of worlds fixes some of the messages: "EOF while parsing a value",
// "trailing data at offset N".
Result<Value> decode(BytesView bytes);
Bytes encode(const Value& value);
void append(Bytes& out, const Value& value);
Bytes canonical(const Value& value);
void append_canonical(Bytes& out, const Value& value);  // without the self-describing tag
// True when the encoded key `a` comes before `b` in a canonical map.
bool key_before(BytesView a, BytesView b);
// SHA-256 of the canonical bytes.
Digest hash_of(const Value& value);

// Appends CBOR items one by one, for envelopes and records whose layout is fixed. Each function
// writes one item, except raw(), which writes bytes that are already CBOR.
class Out {
 public:
  explicit Out(Bytes& to) : to_(to) {}
  Out& head(uint8_t major, uint64_t n);
  Out& map(size_t entries) { return head(5, entries); }
  Out& array(size_t items) { return head(4, items); }
  Out& uint(uint64_t n) { return head(0, n); }
  Out& text(std::string_view t) { return head(3, t.size()).raw(t); }
  Out& bytes(BytesView b) { return head(2, b.size()).raw(b); }
  Out& boolean(bool v) { return raw(v ? "\xf5" : "\xf4"); }
  Out& null() { return raw("\xf6"); }
  Out& raw(BytesView b) {
    to_.append(b);
    return *this;
  }
  // Writes a digest as an array of integers, one for each byte, as the contract of worlds has it.
  Out& digest_array(BytesView digest);

 private:
  Bytes& to_;
};

}  // namespace pawl::cbor

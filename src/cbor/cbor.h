#pragma once
// CBOR in and out. decode() takes any well-formed value: long integers, indefinite lengths, tags.
// encode() writes shortest heads and leaves maps in their order; canonical() also sorts map keys
// (by major type, then shorter first, then bytewise), keeps the last of equal keys and begins with
// the self-describing tag d9d9f7: of equal values there is one text, so it can be hashed.

#include "base/hash.h"
#include "base/result.h"
#include "cbor/value.h"

namespace pawl::cbor {

inline constexpr BytesView kSelfDescribed{"\xd9\xd9\xf7", 3};
// Deep enough for any schema, shallow enough that recursion cannot end the stack.
inline constexpr size_t kDepth = 256;

// Errors: BAD_CBOR, with the words of the peers: "EOF while parsing a value", "trailing data at
// offset N".
Result<Value> decode(BytesView bytes);
Bytes encode(const Value& value);
void append(Bytes& out, const Value& value);
Bytes canonical(const Value& value);
void append_canonical(Bytes& out, const Value& value);  // without the tag
// The order of canonical map keys, given as they are encoded.
bool key_before(BytesView a, BytesView b);
// SHA-256 of the canonical bytes.
Digest hash_of(const Value& value);

// Writes items one after the other, for envelopes and records whose shape is known.
class Out {
 public:
  explicit Out(Bytes& to) : to_(to) {}
  Out& head(uint8_t major, uint64_t n);
  Out& map(size_t entries) { return head(5, entries); }
  Out& array(size_t items) { return head(4, items); }
  Out& uint(uint64_t n) { return head(0, n); }
  Out& text(std::string_view t) { return head(3, t.size()).raw(t); }
  Out& bytes(BytesView b) { return head(2, b.size()).raw(b); }
  Out& boolean(bool v) { return to_.push_back(v ? '\xf5' : '\xf4'), *this; }
  Out& null() { return to_.push_back('\xf6'), *this; }
  Out& raw(BytesView b) { return to_.append(b), *this; }
  // A digest the way the peers write bare 32-byte arrays: as 32 integers.
  Out& digest_array(BytesView digest);

 private:
  Bytes& to_;
};

}  // namespace pawl::cbor

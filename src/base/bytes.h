#pragma once
// Bytes are a std::string. A Writer appends fields to it; a Reader reads the same fields back in
// the same order. Frames, cells and commands are all written with these two.
//
// Integers are varints (LEB128, signed ones in zigzag form) unless they are named fixed, which are
// little-endian. Strings are preceded by their length.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pawl {

using Bytes = std::string;
using BytesView = std::string_view;

// Writes fields at the end of `out`, which the caller owns. The fixed widths copy the memory of the
// number, so this code runs only on little-endian machines.
class Writer {
 public:
  explicit Writer(Bytes& out) : out_(out) {}
  void u8(uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void fixed32(uint32_t v) { out_.append(reinterpret_cast<const char*>(&v), 4); }
  void fixed64(uint64_t v) { out_.append(reinterpret_cast<const char*>(&v), 8); }
  void uint(uint64_t v) {
    while (v >= 0x80) {
      out_.push_back(static_cast<char>(v | 0x80));
      v >>= 7;
    }
    out_.push_back(static_cast<char>(v));
  }
  void sint(int64_t v) { uint((static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63)); }
  void boolean(bool v) { u8(v ? 1 : 0); }
  void str(BytesView v) {
    uint(v.size());
    out_.append(v);
  }

 private:
  Bytes& out_;
};

// When a field is missing or malformed, ok() turns false and stays false, and every further read
// gives zero or an empty view. So a caller reads a whole record and asks ok() or done() once.
// The views that str() and rest() return point into the bytes that are read.
class Reader {
 public:
  explicit Reader(BytesView in) : in_(in) {}
  uint8_t u8() {
    if (in_.empty()) return refuse();
    uint8_t v = static_cast<uint8_t>(in_[0]);
    in_.remove_prefix(1);
    return v;
  }
  uint32_t fixed32() { return fixed<uint32_t>(); }
  uint64_t fixed64() { return fixed<uint64_t>(); }
  // Seven bits a byte, the lowest first; the high bit says that another byte follows. More than ten
  // bytes are refused.
  uint64_t uint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (in_.empty()) return refuse();
      uint8_t b = static_cast<uint8_t>(in_[0]);
      in_.remove_prefix(1);
      v |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (!(b & 0x80)) return v;
    }
    return refuse();
  }
  int64_t sint() {
    uint64_t v = uint();
    return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
  }
  bool boolean() { return u8() != 0; }
  BytesView str() {
    uint64_t n = uint();
    if (n > in_.size()) {
      refuse();
      return {};
    }
    BytesView v = in_.substr(0, n);
    in_.remove_prefix(n);
    return v;
  }
  BytesView rest() const { return in_; }
  bool ok() const { return ok_; }
  // True when every read succeeded and no bytes are left over.
  bool done() const { return ok_ && in_.empty(); }
  // Number of items of a list. A count above the number of remaining bytes is refused, so corrupt
  // bytes cannot make the caller allocate for items that are not there.
  size_t count() {
    uint64_t n = uint();
    if (n > in_.size()) return refuse();
    return n;
  }

 private:
  template <class T>
  T fixed() {
    if (in_.size() < sizeof(T)) return refuse();
    T v;
    std::memcpy(&v, in_.data(), sizeof(T));
    in_.remove_prefix(sizeof(T));
    return v;
  }
  // Returns the zero that the failed read gives.
  uint8_t refuse() {
    ok_ = false;
    in_ = {};
    return 0;
  }
  BytesView in_;
  bool ok_ = true;
};

// A number as 8 bytes, big-endian: keys made of them sort as the numbers do.
inline Bytes ordered64(uint64_t v) {
  Bytes out(8, '\0');
  for (int i = 7; i >= 0; --i, v >>= 8)
    out[i] = static_cast<char>(v & 0xff);
  return out;
}
// The number at the front of `in`. Fewer than 8 bytes are read as a shorter number.
inline uint64_t read_ordered64(BytesView in) {
  uint64_t v = 0;
  for (size_t i = 0; i < 8 && i < in.size(); ++i)
    v = (v << 8) | static_cast<uint8_t>(in[i]);
  return v;
}

// The smallest key that is larger than every key with this prefix; empty when there is none.
Bytes after_prefix(BytesView prefix);

std::string hex(BytesView bytes);
Result<Bytes> unhex(std::string_view text);
std::string base64(BytesView bytes);
std::string base64url(BytesView bytes);         // without padding
Result<Bytes> unbase64(std::string_view text);  // either alphabet, padding optional

}  // namespace pawl

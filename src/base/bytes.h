#pragma once
// Bytes are a std::string. A Writer appends fields to one, a Reader takes them off again and says
// `corrupt` when they are not there. Integers are varints unless named fixed; strings carry their
// length. Frames, cells and commands are all written with these two.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pawl {

using Bytes = std::string;
using BytesView = std::string_view;

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

// After a failure every further read gives an empty value and ok() stays false: read a whole
// record, then ask once.
class Reader {
 public:
  explicit Reader(BytesView in) : in_(in) {}
  uint8_t u8() {
    if (in_.empty()) return fail_now();
    uint8_t v = static_cast<uint8_t>(in_[0]);
    in_.remove_prefix(1);
    return v;
  }
  uint32_t fixed32() { return fixed<uint32_t>(); }
  uint64_t fixed64() { return fixed<uint64_t>(); }
  uint64_t uint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (in_.empty()) return fail_now();
      uint8_t b = static_cast<uint8_t>(in_[0]);
      in_.remove_prefix(1);
      v |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (!(b & 0x80)) return v;
    }
    return fail_now();
  }
  int64_t sint() {
    uint64_t v = uint();
    return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
  }
  bool boolean() { return u8() != 0; }
  BytesView str() {
    uint64_t n = uint();
    if (n > in_.size()) {
      fail_now();
      return {};
    }
    BytesView v = in_.substr(0, n);
    in_.remove_prefix(n);
    return v;
  }
  BytesView rest() const { return in_; }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }
  // How many items a list may have: no more than the bytes left, so a bad count cannot allocate.
  size_t count() {
    uint64_t n = uint();
    if (n > in_.size()) return fail_now();
    return n;
  }

 private:
  template <class T>
  T fixed() {
    if (in_.size() < sizeof(T)) return fail_now();
    T v;
    std::memcpy(&v, in_.data(), sizeof(T));
    in_.remove_prefix(sizeof(T));
    return v;
  }
  uint8_t fail_now() {
    ok_ = false;
    in_ = {};
    return 0;
  }
  BytesView in_;
  bool ok_ = true;
};

// Big-endian 8 bytes: keys that sort as numbers do.
inline Bytes ordered64(uint64_t v) {
  Bytes out(8, '\0');
  for (int i = 7; i >= 0; --i, v >>= 8)
    out[i] = static_cast<char>(v & 0xff);
  return out;
}
inline uint64_t read_ordered64(BytesView in) {
  uint64_t v = 0;
  for (size_t i = 0; i < 8 && i < in.size(); ++i)
    v = (v << 8) | static_cast<uint8_t>(in[i]);
  return v;
}

// The first key after every key that begins with `prefix`; empty when there is none.
Bytes after_prefix(BytesView prefix);

std::string hex(BytesView bytes);
Result<Bytes> unhex(std::string_view text);
std::string base64(BytesView bytes);
std::string base64url(BytesView bytes);         // without padding
Result<Bytes> unbase64(std::string_view text);  // either alphabet, padding optional

}  // namespace pawl

#pragma once
// In reads CBOR item by item without copying, for envelopes and values whose layout is known. It
// accepts only what canonical CBOR contains: shortest heads and definite lengths. At anything else
// ok() turns false and stays false, further reads give empty values, and the caller falls back to
// decode().

#include "cbor/cbor.h"

namespace pawl::cbor {

class In {
 public:
  explicit In(BytesView in) : in_(in) {}

  struct Head {
    uint8_t major = 7;
    uint64_t n = 0;  // the number, length or count; for major 7 the simple value
    bool operator==(const Head&) const = default;
  };
  Head head() {
    if (in_.empty()) return bad();
    const uint8_t first = static_cast<uint8_t>(in_[0]);
    const uint8_t info = first & 31;
    Head h{static_cast<uint8_t>(first >> 5), info};
    in_.remove_prefix(1);
    if (info < 24) return h;
    if (info > 27 || h.major == 7) return bad();
    const size_t size = size_t{1} << (info - 24);
    if (in_.size() < size) return bad();
    h.n = 0;
    for (size_t i = 0; i < size; ++i)
      h.n = h.n << 8 | static_cast<uint8_t>(in_[i]);
    in_.remove_prefix(size);
    // The smallest number that needs `size` bytes: 24 for one byte, else 2^(8 * size / 2), since
    // each width is twice the one before.
    const uint64_t least = info == 24 ? 24 : uint64_t{1} << (4 * size);
    return h.n < least ? bad() : h;
  }
  // The number of entries of a map (5) or items of an array (4). A number above the remaining bytes
  // is refused.
  uint64_t count(uint8_t major) {
    const Head h = head();
    if (h.major != major || h.n > in_.size()) return bad().n;
    return h.n;
  }
  // The content of a text (3) or a byte string (2). Text is not checked to be UTF-8.
  BytesView run(uint8_t major) {
    const Head h = head();
    if (h.major != major || h.n > in_.size()) {
      refuse();
      return {};
    }
    BytesView out = in_.substr(0, h.n);
    in_.remove_prefix(h.n);
    return out;
  }
  // Skips exactly these bytes when they come next; otherwise returns false and reads nothing.
  bool take(BytesView bytes) {
    if (!in_.starts_with(bytes)) return false;
    in_.remove_prefix(bytes.size());
    return true;
  }
  bool take_null() { return take("\xf6"); }
  // The encoded bytes of the next item with everything inside it.
  BytesView item() {
    const BytesView from = in_;
    skip(0);
    return ok_ ? from.substr(0, from.size() - in_.size()) : BytesView();
  }

  // The content of an array of `n` integers below 256, which is how trees of digests are written.
  Bytes bytes_of_array(size_t n) {
    Bytes out;
    if (count(4) != n) {
      refuse();
      return out;
    }
    out.resize_and_overwrite(n, [&](char* to, size_t) {
      if (copy_small_integers(to, n)) return n;
      refuse();
      return size_t{0};
    });
    return out;
  }

  BytesView rest() const { return in_; }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }
  // Makes ok() false: for a caller that finds a value it does not accept.
  void refuse() { bad(); }

 private:
  Head bad() {
    ok_ = false;
    in_ = {};
    return {};
  }
  // Reads `n` integers below 256 in their shortest form. False when one is not.
  bool copy_small_integers(char* to, size_t n) {
    size_t at = 0;
    for (size_t i = 0; i < n; ++i) {
      if (at >= in_.size()) return false;
      uint8_t byte = static_cast<uint8_t>(in_[at++]);
      if (byte >= 24) {  // the integer stands in a second byte
        if (byte != 0x18 || at >= in_.size()) return false;
        byte = static_cast<uint8_t>(in_[at++]);
        if (byte < 24) return false;
      }
      to[i] = static_cast<char>(byte);
    }
    in_.remove_prefix(at);
    return true;
  }
  // Tags are refused: canonical bytes hold none except the self-describing one, which the caller
  // takes first.
  void skip(size_t depth) {
    const Head h = head();
    if (depth > kDepth || h.major == 6) return refuse();
    if (h.major == 2 || h.major == 3) {
      if (h.n > in_.size()) return refuse();
      in_.remove_prefix(h.n);
    }
    if (h.major != 4 && h.major != 5) return;
    for (uint64_t i = 0; ok_ && i < h.n; ++i) {
      skip(depth + 1);
      if (h.major == 5) skip(depth + 1);
    }
  }

  BytesView in_;
  bool ok_ = true;
};

}  // namespace pawl::cbor

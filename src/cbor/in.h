#pragma once
// Reads CBOR item by item where it lies, for envelopes and values whose shape is known: nothing is
// copied. It knows only what canonical text has, shortest heads and definite lengths; at anything
// else ok() turns false and decode() must look at the whole.

#include "cbor/cbor.h"

namespace pawl::cbor {

class In {
 public:
  explicit In(BytesView in) : in_(in) {}

  struct Head {
    uint8_t major = 7;
    uint64_t n = 0;  // the number, length or count; of major 7 the simple value
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
    const uint64_t least = info == 24 ? 24 : uint64_t{1} << (4 * size);
    return h.n < least ? bad() : h;
  }
  // The count of a map or an array; never more than there can be.
  uint64_t count(uint8_t major) {
    const Head h = head();
    if (h.major != major || h.n > in_.size()) return bad().n;
    return h.n;
  }
  // A text (3) or a byte string (2). Whether text is UTF-8 is for is_utf8() to say.
  BytesView run(uint8_t major) {
    const Head h = head();
    if (h.major != major || h.n > in_.size()) return bad(), BytesView();
    BytesView out = in_.substr(0, h.n);
    in_.remove_prefix(h.n);
    return out;
  }
  // Takes exactly these bytes, when they are next.
  bool take(BytesView bytes) {
    if (!in_.starts_with(bytes)) return false;
    in_.remove_prefix(bytes.size());
    return true;
  }
  bool take_null() { return take("\xf6"); }
  // The next item, whole.
  BytesView item() {
    const BytesView from = in_;
    skip(0);
    return ok_ ? from.substr(0, from.size() - in_.size()) : BytesView();
  }

  // An array of `n` numbers of a byte each, as trees of digests have them.
  Bytes bytes_of_array(size_t n) {
    Bytes out;
    if (count(4) != n) return bad(), out;
    out.resize_and_overwrite(n, [&](char* to, size_t) {
      size_t at = 0;
      for (size_t i = 0; i < n; ++i) {
        if (at >= in_.size()) return bad(), size_t{0};
        uint8_t byte = static_cast<uint8_t>(in_[at++]);
        if (byte >= 24) {
          if (byte != 0x18 || at >= in_.size() || (byte = static_cast<uint8_t>(in_[at++])) < 24)
            return bad(), size_t{0};
        }
        to[i] = static_cast<char>(byte);
      }
      in_.remove_prefix(at);
      return n;
    });
    return out;
  }

  BytesView rest() const { return in_; }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }
  void refuse() { bad(); }

 private:
  Head bad() {
    ok_ = false;
    in_ = {};
    return {};
  }
  void skip(size_t depth) {
    const Head h = head();
    if (depth > kDepth || h.major == 6)
      refuse();
    else if (h.major == 2 || h.major == 3)
      h.n <= in_.size() ? in_.remove_prefix(h.n) : refuse();
    else if (h.major == 4 || h.major == 5)
      for (uint64_t i = 0; ok_ && i < h.n; ++i) {
        skip(depth + 1);
        if (h.major == 5) skip(depth + 1);
      }
  }

  BytesView in_;
  bool ok_ = true;
};

}  // namespace pawl::cbor

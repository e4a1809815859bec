#include <bit>
#include <cmath>

#include "base/utf8.h"
#include "cbor/cbor.h"

namespace pawl::cbor {
namespace {

// Half precision (IEEE 754): 1 sign bit, 5 bits of exponent with a bias of 15, 10 bits of fraction.
// Exponent 0 is a subnormal number, 31 is infinity or NaN.
double from_half(uint16_t half) {
  const int exponent = half >> 10 & 0x1f;
  const int fraction = half & 0x3ff;
  double v = exponent == 0    ? std::ldexp(fraction, -24)
             : exponent != 31 ? std::ldexp(fraction + 1024, exponent - 25)
             : fraction == 0  ? HUGE_VAL
                              : std::nan("");
  return half & 0x8000 ? -v : v;
}

// Items for which an array or map reserves memory in advance. A hostile count may be far above the
// number of items that follow, and every level of nesting may repeat it.
constexpr uint64_t kMaxReserved = 256;

// Decodes recursively. item() is given the depth of its value and refuses more than kDepth levels.
class Decoder {
 public:
  explicit Decoder(BytesView in) : in_(in) {}

  Result<Value> whole() {
    TRY(Value value, item(0));
    if (at_ != in_.size()) return bad("trailing data at offset " + std::to_string(at_ + 1));
    return value;
  }

 private:
  // The first byte of an item and the number that follows it.
  struct Head {
    uint8_t major, info;
    uint64_t n;
    bool indefinite() const { return info == 31; }  // a break byte ends the item
  };
  static std::unexpected<Error> bad(std::string what) {
    return fail(Code::invalid, "BAD_CBOR", "failed to decode CBOR: " + std::move(what));
  }
  static std::unexpected<Error> eof() { return bad("EOF while parsing a value"); }

  Result<Head> head() {
    if (at_ >= in_.size()) return eof();
    const uint8_t first = static_cast<uint8_t>(in_[at_++]);
    Head h{static_cast<uint8_t>(first >> 5), static_cast<uint8_t>(first & 31),
           static_cast<uint64_t>(first & 31)};
    // Below 24 the number is in the first byte. 24 to 27 say that it follows in 1, 2, 4 or 8 bytes;
    // 28 to 30 are reserved.
    if (h.info < 24 || h.info == 31) return h;
    if (h.info > 27) return bad("unassigned type at offset " + std::to_string(at_));
    const size_t size = size_t{1} << (h.info - 24);
    if (in_.size() - at_ < size) return eof();
    h.n = 0;
    for (size_t i = 0; i < size; ++i)
      h.n = h.n << 8 | static_cast<uint8_t>(in_[at_++]);
    return h;
  }

  // The content of a text or byte string; one of indefinite length is joined from its chunks.
  Result<Bytes> string_content(const Head& h) {
    if (!h.indefinite()) {
      if (h.n > in_.size() - at_) return eof();
      Bytes out(in_.substr(at_, h.n));
      at_ += h.n;
      return out;
    }
    Bytes out;
    for (;;) {
      if (take_break()) return out;
      TRY(Head part, head());
      if (part.major != h.major || part.indefinite())
        return bad("bad chunk in a string at offset " + std::to_string(at_));
      TRY(Bytes piece, string_content(part));
      out += piece;
    }
  }

  bool take_break() {
    if (at_ >= in_.size() || in_[at_] != '\xff') return false;
    ++at_;
    return true;
  }

  // True when an array or map has a further item after `i` of them. Takes the break at its end.
  bool has_item(const Head& h, uint64_t i) { return h.indefinite() ? !take_break() : i < h.n; }

  Result<Value> item(size_t depth) {
    if (depth > kDepth) return bad("nested deeper than " + std::to_string(kDepth));
    TRY(Head h, head());
    // Tags are dropped. They may be stacked, so their number is limited as nesting is.
    for (size_t tags = 0; h.major == 6; ++tags) {
      if (h.indefinite() || tags > kDepth) return bad("bad tag at offset " + std::to_string(at_));
      TRY(h, head());
    }
    switch (h.major) {
      case 0:
      case 1:
        if (h.indefinite()) return bad("bad integer at offset " + std::to_string(at_));
        return Value(Int{h.major == 1, h.n});
      case 2: {
        TRY(Bytes bytes, string_content(h));
        return Value(Octets{std::move(bytes)});
      }
      case 3: {
        TRY(Bytes text, string_content(h));
        if (!is_utf8(text)) return bad("invalid UTF-8 in text at offset " + std::to_string(at_));
        return Value(std::move(text));
      }
      case 4: return list(h, depth);
      case 5: return map(h, depth);
      // Major type 7: false, true, null, undefined and floats.
      default: return simple(h);
    }
  }

  Result<Value> list(const Head& h, size_t depth) {
    // Every item has at least one byte, so a count above the remaining bytes is known to be wrong.
    if (!h.indefinite() && h.n > in_.size() - at_) return eof();
    Array out;
    if (!h.indefinite()) out.reserve(std::min(h.n, kMaxReserved));
    for (uint64_t i = 0; has_item(h, i); ++i) {
      TRY(Value next, item(depth + 1));
      out.push_back(std::move(next));
    }
    return Value(std::move(out));
  }

  Result<Value> map(const Head& h, size_t depth) {
    if (!h.indefinite() && h.n > in_.size() - at_) return eof();
    Map out;
    if (!h.indefinite()) out.reserve(std::min(h.n, kMaxReserved));
    for (uint64_t i = 0; has_item(h, i); ++i) {
      TRY(Value key, item(depth + 1));
      TRY(Value value, item(depth + 1));
      out.emplace_back(std::move(key), std::move(value));
    }
    return Value(std::move(out));
  }

  Result<Value> simple(const Head& h) {
    switch (h.info) {
      case 20: return Value(false);
      case 21: return Value(true);
      // null, and undefined, which becomes null.
      case 22:
      case 23: return Value();
      case 25: return Value(from_half(static_cast<uint16_t>(h.n)));
      case 26: return Value(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(h.n))));
      case 27: return Value(std::bit_cast<double>(h.n));
      default: return bad("unassigned type at offset " + std::to_string(at_));
    }
  }

  BytesView in_;
  size_t at_ = 0;
};

}  // namespace

Result<Value> decode(BytesView bytes) { return Decoder(bytes).whole(); }

}  // namespace pawl::cbor

#include "base/bytes.h"

namespace pawl {

// A byte 0xff cannot be increased, so it is dropped and the byte before it is increased instead.
Bytes after_prefix(BytesView prefix) {
  Bytes out(prefix);
  while (!out.empty()) {
    auto last = static_cast<uint8_t>(out.back());
    if (last != 0xff) {
      out.back() = static_cast<char>(last + 1);
      return out;
    }
    out.pop_back();
  }
  return out;
}

std::string hex(BytesView bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (unsigned char c : bytes) {
    out.push_back(digits[c >> 4]);
    out.push_back(digits[c & 15]);
  }
  return out;
}

// The value of a hex digit, or -1.
static int nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<Bytes> unhex(std::string_view text) {
  if (text.size() % 2)
    return fail(Code::invalid, "BAD_HEX", "hex text has an odd number of digits");
  Bytes out;
  out.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    int hi = nibble(text[i]);
    int lo = nibble(text[i + 1]);
    if (hi < 0 || lo < 0)
      return fail(Code::invalid, "BAD_HEX", "not a hex digit at offset " + std::to_string(i));
    out.push_back(static_cast<char>(hi << 4 | lo));
  }
  return out;
}

static std::string encode64(BytesView bytes, const char* alphabet, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  size_t i = 0;
  for (; i + 2 < bytes.size(); i += 3) {
    uint32_t v = static_cast<uint8_t>(bytes[i]) << 16 | static_cast<uint8_t>(bytes[i + 1]) << 8 |
                 static_cast<uint8_t>(bytes[i + 2]);
    for (int shift = 18; shift >= 0; shift -= 6)
      out.push_back(alphabet[v >> shift & 63]);
  }
  // One or two bytes are left over. They give two or three digits, with zero bits at the end.
  size_t left = bytes.size() - i;
  if (left) {
    uint32_t v = static_cast<uint8_t>(bytes[i]) << 16;
    if (left == 2) v |= static_cast<uint8_t>(bytes[i + 1]) << 8;
    out.push_back(alphabet[v >> 18 & 63]);
    out.push_back(alphabet[v >> 12 & 63]);
    if (left == 2) out.push_back(alphabet[v >> 6 & 63]);
    if (pad) out.append(left == 2 ? "=" : "==");
  }
  return out;
}

std::string base64(BytesView bytes) {
  return encode64(bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", true);
}
std::string base64url(BytesView bytes) {
  return encode64(bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", false);
}

// Accepts both alphabets: '+' and '-' are 62, '/' and '_' are 63.
static int digit64(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  if (c == '/' || c == '_') return 63;
  return -1;
}

Result<Bytes> unbase64(std::string_view text) {
  while (!text.empty() && text.back() == '=')
    text.remove_suffix(1);
  Bytes out;
  uint32_t v = 0;
  int bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    int d = digit64(text[i]);
    if (d < 0)
      return fail(Code::invalid, "BAD_BASE64", "not base64 at offset " + std::to_string(i));
    v = v << 6 | static_cast<uint32_t>(d);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out.push_back(static_cast<char>(v >> bits & 0xff));
    }
  }
  // A lone digit at the end holds no whole byte. Bits that are left over must be zero: otherwise
  // two texts would decode to the same bytes.
  if (bits >= 6 || (v & ((1u << bits) - 1)))
    return fail(Code::invalid, "BAD_BASE64", "base64 text ends in the middle of a byte");
  return out;
}

}  // namespace pawl

#include "base/utf8.h"

namespace pawl {

// 0xc0, 0xc1 and bytes from 0xf5 on never begin a character. `at` gives 0 past the end, which is no
// continuation byte, so a truncated character is refused without a check of its own.
size_t utf8_length(std::string_view text, size_t i) {
  auto at = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  unsigned lead = at(i);
  unsigned next = at(i + 1);
  if (lead < 0x80) return 1;
  size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                  : lead >= 0xe0 && lead < 0xf0 ? 3
                  : lead >= 0xf0 && lead < 0xf5 ? 4
                                                : 0;
  // The second byte decides about the rest: overlong forms (e0, f0), surrogates (ed), and values
  // above U+10FFFF (f4).
  if ((lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) ||
      (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next > 0x8f))
    return 0;
  for (size_t k = 1; k < length; ++k)
    if ((at(i + k) & 0xc0) != 0x80) return 0;
  return length;
}

// The lead byte of a character of n bytes begins with n one bits and a zero, which the mask
// removes.
uint32_t character_at(std::string_view text, size_t i, size_t length) {
  auto byte = [&](size_t k) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[i + k]));
  };
  uint32_t c = length == 1 ? byte(0) : byte(0) & (0x7fu >> length);
  for (size_t k = 1; k < length; ++k)
    c = c << 6 | (byte(k) & 0x3f);
  return c;
}

void append_utf8(std::string& out, uint32_t c) {
  auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    size_t length = utf8_length(text, i);
    out.append(length ? text.substr(i, length) : kReplacement);
    i += length ? length : 1;
  }
  return out;
}

}  // namespace pawl

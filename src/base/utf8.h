#pragma once
// Validation and repair of UTF-8: overlong forms, surrogates and values above U+10FFFF are not
// UTF-8. JSON and CBOR text must be valid, or clients cannot read it back; text that was cut at a
// byte or that a client sent may not be.

#include <cstdint>
#include <string>
#include <string_view>

namespace pawl {

// U+FFFD, the replacement character, which stands for a byte that is not part of a character.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Number of bytes of the character at `i`; 0 when no character begins there.
size_t utf8_length(std::string_view text, size_t i);
// The code point of the character at `i`, which has `length` bytes.
uint32_t character_at(std::string_view text, size_t i, size_t length);
void append_utf8(std::string& out, uint32_t character);

// Replaces each character by what `change` returns for it. Bytes that are not part of a character
// are kept.
template <class Change>
std::string map_characters(std::string_view text, Change&& change) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    size_t length = static_cast<unsigned char>(text[i]) < 0x80 ? 1 : utf8_length(text, i);
    if (length)
      append_utf8(out, change(character_at(text, i, length)));
    else
      out += text[i];
    i += length ? length : 1;
  }
  return out;
}

bool is_utf8(std::string_view text);
// The text with U+FFFD in place of every byte that is not part of a character.
std::string as_utf8(std::string_view text);

}  // namespace pawl

#pragma once
// Which bytes are UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF. JSON and CBOR
// text must be, or nobody can read it back; text that was cut by bytes, or that a peer sent, may
// not be.

#include <cstdint>
#include <string>
#include <string_view>

namespace pawl {

inline constexpr std::string_view kReplacement =
    "\xEF\xBF\xBD";  // U+FFFD: stands for a byte that belongs to no character

// How many bytes the character at `i` takes; 0 when no character begins there.
size_t utf8_length(std::string_view text, size_t i);
// The character of that length at `i`.
uint32_t character_at(std::string_view text, size_t i, size_t length);
void append_utf8(std::string& out, uint32_t character);

// Each character as `change` makes it; a byte that belongs to none stays.
template <class Change>
std::string each_character(std::string_view text, Change&& change) {
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
// The text with U+FFFD for every byte that belongs to no character.
std::string as_utf8(std::string_view text);

}  // namespace pawl

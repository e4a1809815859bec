#include "expr/letters.h"

#include <cstdint>

#include "base/utf8.h"

namespace pawl::expr {

namespace {

// Upper case letters from `first` to `last`; the lower case one stands `offset` behind. With an offset
// of 1 they stand in turn: every second is upper case.
struct Letters {
  uint32_t first, last;
  int32_t offset;
};
constexpr Letters kLetters[] = {
    {0x41, 0x5a, 32},    {0xc0, 0xd6, 32},    {0xd8, 0xde, 32},                                               // Latin
    {0x100, 0x12e, 1},   {0x132, 0x136, 1},   {0x139, 0x147, 1},   {0x14a, 0x176, 1},   {0x178, 0x178, -121},
    {0x179, 0x17d, 1},   {0x1e00, 0x1e94, 1}, {0x1ea0, 0x1efe, 1},
    {0x386, 0x386, 38},  {0x388, 0x38a, 37},  {0x38c, 0x38c, 64},  {0x38e, 0x38f, 63},  {0x391, 0x3a1, 32},  // Greek
    {0x3a3, 0x3ab, 32},
    {0x400, 0x40f, 80},  {0x410, 0x42f, 32},  {0x460, 0x480, 1},   {0x48a, 0x4be, 1},   {0x4d0, 0x52e, 1},   // Cyrillic
    {0x531, 0x556, 48},                                                                                        // Armenian
};

uint32_t lowered(uint32_t c) {
  for (const Letters& l : kLetters)
    if (c >= l.first && c <= l.last && (l.offset != 1 || (c - l.first) % 2 == 0)) return c + static_cast<uint32_t>(l.offset);
  return c;
}

uint32_t raised(uint32_t c) {
  if (c == 0x3c2) return 0x3a3;  // the sigma that ends a word
  for (const Letters& l : kLetters) {
    uint32_t up = c - static_cast<uint32_t>(l.offset);
    if (up >= l.first && up <= l.last && (l.offset != 1 || (up - l.first) % 2 == 0)) return up;
  }
  return c;
}

}  // namespace

std::string upper_case(std::string_view text) { return each_character(text, raised); }
std::string lower_case(std::string_view text) { return each_character(text, lowered); }

}  // namespace pawl::expr

#include "kernel/cell.h"

#include <vector>

namespace pawl {

// Inside a part, 0x00 becomes 0x01 0x02 and 0x01 becomes 0x01 0x01, so that a zero byte is always a
// separator.
static void append_part(Key& out, std::string_view part) {
  if (part.find_first_of(std::string_view("\0\1", 2)) == std::string_view::npos) {
    out.append(part);
    return;
  }
  for (char c : part) {
    if (c == '\0')
      out.append("\x01\x02", 2);
    else if (c == '\x01')
      out.append("\x01\x01", 2);
    else
      out.push_back(c);
  }
}

Key key(std::initializer_list<std::string_view> parts) {
  Key out;
  size_t size = 10;  // room for what callers append
  for (std::string_view part : parts)
    size += part.size() + 1;
  out.reserve(size);
  bool first = true;
  for (std::string_view part : parts) {
    if (!first) out.push_back('\0');
    first = false;
    append_part(out, part);
  }
  return out;
}

Key prefix(std::initializer_list<std::string_view> parts) {
  Key out = key(parts);
  out.push_back('\0');
  return out;
}

std::vector<std::string> parts_of(BytesView key) {
  std::vector<std::string> out(1);
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '\0')
      out.emplace_back();
    else if (key[i] == '\x01' && i + 1 < key.size())
      out.back().push_back(key[++i] == '\x02' ? '\0' : '\x01');
    else
      out.back().push_back(key[i]);
  }
  return out;
}

}  // namespace pawl

#include "faces/worlds/air/name.h"

#include <algorithm>

namespace pawl::worlds {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_letter(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }
bool is_mark(char c) { return c == '.' || c == '_' || c == '-'; }

// True when `text` begins with a `first` and all further characters are a `rest`. Empty text is
// false.
template <class First, class Rest>
bool all(std::string_view text, First first, Rest rest) {
  return !text.empty() && first(text[0]) && std::all_of(text.begin() + 1, text.end(), rest);
}

}  // namespace

const std::string kNoHash = "sha256:" + std::string(64, '0');

bool is_name(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view space = text.substr(0, slash), rest = text.substr(slash + 1);
  // Names are split at the first '/' and the first '@': a second one is then no letter, digit or
  // mark.
  const size_t at = rest.find('@');
  if (at == std::string_view::npos) return false;
  return all(space, is_lower, [](char c) { return is_lower(c) || is_digit(c) || is_mark(c); }) &&
         all(rest.substr(0, at), is_letter,
             [](char c) { return is_letter(c) || is_digit(c) || is_mark(c); }) &&
         all(
             rest.substr(at + 1), [](char c) { return is_digit(c) && c != '0'; }, is_digit);
}

bool is_module_name(std::string_view text) {
  const size_t at = std::min(text.find('@'), text.size());
  size_t end = std::min(at + 1, text.size());
  while (end < text.size() && is_digit(text[end]))
    ++end;
  const std::string_view rest = text.substr(end);
  return is_name(text.substr(0, end)) && std::all_of(rest.begin(), rest.end(), [](char c) {
           return is_letter(c) || is_digit(c) || is_mark(c);
         });
}

bool is_hash(std::string_view text) {
  // 7 for "sha256:" and 64 hex digits. Upper case is refused, so that a hash has one spelling.
  if (text.size() != 71 || !text.starts_with("sha256:")) return false;
  return std::all_of(text.begin() + 7, text.end(),
                     [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

std::string hash_text(BytesView digest) { return "sha256:" + hex(digest); }

Result<Bytes> parse_hash(std::string_view text) {
  if (!is_hash(text))
    return fail(
        Code::invalid, "invalid_request",
        "'" + std::string(text) + "' is no hash: write sha256: and 64 lower-case hex digits");
  return unhex(text.substr(7));
}

std::string arm_of(std::string_view tag) {
  std::string out;
  for (char c : tag) {
    const bool large = c >= 'A' && c <= 'Z';
    if (large && !out.empty()) out += '_';
    out += large ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace pawl::worlds

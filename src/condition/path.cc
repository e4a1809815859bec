#include "condition/path.h"

#include <charconv>
#include <cstring>

#include "base/utf8.h"

namespace pawl::condition {

namespace {

// Reads a string. `at` is after the opening quote and moves past the closing one.
std::string_view take_string(const char*& at, const char* end, bool& escaped) {
  const char* first = at;
  escaped = false;
  while (at < end) {
    auto quote = static_cast<const char*>(memchr(at, '"', static_cast<size_t>(end - at)));
    if (!quote) break;
    size_t slashes = 0;
    while (quote - slashes > first && quote[-1 - static_cast<ptrdiff_t>(slashes)] == '\\')
      ++slashes;
    at = quote + 1;
    if (slashes % 2 == 0) {
      size_t size = static_cast<size_t>(quote - first);
      escaped = size && memchr(first, '\\', size);
      return {first, size};
    }
  }
  at = end;
  return {first, static_cast<size_t>(end - first)};
}

// Moves `at` past the object or array that begins there.
void skip_nested(const char*& at, const char* end) {
  int depth = 0;
  while (at < end) {
    switch (*at++) {
      case '{':
      case '[': ++depth; break;
      case '}':
      case ']':
        if (--depth == 0) return;
        break;
      case '"': {
        bool escaped;
        take_string(at, end, escaped);
        break;
      }
      default: break;
    }
  }
}

uint32_t hex4(const char* p) {
  uint32_t v = 0;
  std::from_chars(p, p + 4, v, 16);
  return v;
}

// Decodes the escapes of a JSON string.
void unescape(std::string_view in, std::string& out) {
  out.clear();
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] != '\\' || i + 1 >= in.size()) {
      out.push_back(in[i]);
      continue;
    }
    switch (char c = in[++i]) {
      case 'n': out.push_back('\n'); break;
      case 't': out.push_back('\t'); break;
      case 'r': out.push_back('\r'); break;
      case 'b': out.push_back('\b'); break;
      case 'f': out.push_back('\f'); break;
      case 'u': {
        if (i + 4 >= in.size()) return;
        uint32_t code = hex4(in.data() + i + 1);
        i += 4;
        if (code >= 0xd800 && code < 0xdc00 && i + 6 < in.size() && in[i + 1] == '\\') {
          code = 0x10000 + ((code - 0xd800) << 10) + (hex4(in.data() + i + 3) - 0xdc00);
          i += 6;
        }
        append_utf8(out, code);
        break;
      }
      default: out.push_back(c);
    }
  }
}

bool all_digits(std::string_view s) {
  for (char c : s)
    if (c < '0' || c > '9') return false;
  return !s.empty();
}

}  // namespace

std::string_view text_of(const Field& field, std::string& buffer) {
  if (!field.escaped) return field.text;
  unescape(field.text, buffer);
  return buffer;
}

Field take_value(const char*& at, const char* end) {
  if (at >= end) return {};
  const char* first = at;
  auto rest = [&] { return std::string_view(first, static_cast<size_t>(at - first)); };
  switch (*at) {
    case '"': {
      ++at;
      Field f{.kind = Field::string, .text = {}};
      f.text = take_string(at, end, f.escaped);
      return f;
    }
    case '{': skip_nested(at, end); return {.kind = Field::object, .text = rest()};
    case '[': skip_nested(at, end); return {.kind = Field::array, .text = rest()};
    case 't': at += 4; return {.kind = Field::boolean, .text = rest()};
    case 'f': at += 5; return {.kind = Field::boolean, .text = rest()};
    case 'n': at += 4; return {.kind = Field::null, .text = rest()};
    default:
      while (at < end && *at != ',' && *at != '}' && *at != ']')
        ++at;
      return {.kind = Field::number, .text = rest()};
  }
}

Field root_of(std::string_view json) {
  const char* at = json.data();
  return take_value(at, json.data() + json.size());
}

// Only a member has a colon outside of strings.
size_t count_members(std::string_view json) {
  const char* at = json.data();
  const char* end = at + json.size();
  size_t n = 0;
  while (at < end) {
    const char c = *at++;
    bool escaped;
    if (c == '"') take_string(at, end, escaped);
    if (c == ':') ++n;
  }
  return n;
}

size_t count_elements(const Field& array) {
  size_t n = 0;
  each_element(array, [&](const Field&) {
    ++n;
    return true;
  });
  return n;
}

// Finds a member of the object that begins at `at` and moves `at` to its value. Returns false when
// there is no such member.
static bool enter_member(const char*& at, const char* end, std::string_view name) {
  std::string buffer;
  ++at;
  while (at < end && *at == '"') {
    ++at;
    bool escaped;
    std::string_view found = take_string(at, end, escaped);
    if (escaped) {
      unescape(found, buffer);
      found = buffer;
    }
    ++at;  // the colon
    if (found == name) return true;
    take_value(at, end);
    if (at < end && *at == ',') ++at;
  }
  return false;
}

// The same for an element of an array, whose index is `name`.
static bool enter_element(const char*& at, const char* end, std::string_view name) {
  if (!all_digits(name)) return false;
  size_t index = 0;
  auto parsed = std::from_chars(name.data(), name.data() + name.size(), index);
  if (parsed.ec != std::errc()) return false;
  ++at;
  for (size_t i = 0; at < end && *at != ']'; ++i) {
    if (i == index) return true;
    take_value(at, end);
    if (at < end && *at == ',') ++at;
  }
  return false;
}

Field member(const Field& parent, std::string_view name) {
  const char* at = parent.text.data();
  const char* end = at + parent.text.size();
  bool found = false;
  if (parent.kind == Field::object) found = enter_member(at, end, name);
  if (parent.kind == Field::array) found = enter_element(at, end, name);
  return found ? take_value(at, end) : Field{};
}

Path::Path(std::string_view text) {
  if (text.starts_with("$."))
    text.remove_prefix(2);
  else if (text.starts_with("$"))
    text.remove_prefix(1);
  name_ = text;
  while (!text.empty()) {
    size_t dot = text.find('.');
    std::string_view part = text.substr(0, dot);
    text = dot == text.npos ? std::string_view() : text.substr(dot + 1);
    size_t eaches = 0;
    while (part.ends_with("[*]")) {
      part.remove_suffix(3);
      ++eaches;
    }
    if (!part.empty()) steps_.push_back({std::string(part), false});
    while (eaches--)
      steps_.push_back({{}, true});
  }
  length_ = !steps_.empty() && steps_.back().each;
  for (size_t i = 0; i + 1 < steps_.size(); ++i)
    list_ = list_ || steps_[i].each;
}

// Reads the text once from its start to the field.
Field Path::find(std::string_view json) const {
  const char* at = json.data();
  const char* end = at + json.size();
  for (const Step& step : steps_) {
    if (step.each) break;
    if (at >= end) return {};
    const char kind = *at;
    bool found = false;
    if (kind == '{') found = enter_member(at, end, step.name);
    if (kind == '[') found = enter_element(at, end, step.name);
    if (!found) return {};
  }
  return take_value(at, end);
}

bool Path::collect(std::string_view json, std::vector<Field>& out) const {
  return collect(root_of(json), 0, out);
}

bool Path::collect(const Field& from, size_t step, std::vector<Field>& out) const {
  if (step == steps_.size()) {
    if (from.kind == Field::missing) return false;
    out.push_back(from);
    return true;
  }
  if (!steps_[step].each) return collect(member(from, steps_[step].name), step + 1, out);
  if (from.kind != Field::array) return false;
  if (step + 1 == steps_.size()) {
    out.push_back(from);  // the length of the array is tested
    return true;
  }
  each_element(from, [&](const Field& element) {
    collect(element, step + 1, out);
    return true;
  });
  return true;
}

}  // namespace pawl::condition

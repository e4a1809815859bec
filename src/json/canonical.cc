#include "json/canonical.h"

#include <algorithm>

#include "json/text.h"

namespace pawl::json {

std::string plain_number(std::string_view text) {
  std::string digits;
  int64_t exponent = 0;
  size_t i = text[0] == '-';
  bool point = false;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    digits += text[i];
    if (point) --exponent;
  }
  if (i < text.size())
    exponent += std::strtol(std::string(text.substr(i + 1)).c_str(), nullptr, 10);
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  size_t lead = digits.find_first_not_of('0');
  if (lead == std::string::npos) return "0";
  return (text[0] == '-' ? "-" : "") + digits.substr(lead) + "e" + std::to_string(exponent);
}

namespace {

void append_members(std::string& out, const Object& object, bool keep_order,
                    std::string_view ordered) {
  std::vector<const Member*> members;
  for (const Member& m : object)
    members.push_back(&m);
  if (!keep_order)
    std::sort(members.begin(), members.end(), [](auto* a, auto* b) { return a->name < b->name; });
  out += '{';
  for (const Member* m : members) {
    append_string(out, m->name);
    out += ':';
    if (m->value.is_object())
      append_members(out, m->value.object(), !ordered.empty() && m->name == ordered, ordered);
    else
      append_canonical(out, m->value, ordered);
    out += ',';
  }
  out += '}';
}

}  // namespace

void append_canonical(std::string& out, const Value& v, std::string_view ordered) {
  if (v.is_number()) {
    out += plain_number(v.number_text());
  } else if (v.is_array()) {
    out += '[';
    for (const Value& item : v.array()) {
      append_canonical(out, item, ordered);
      out += ',';
    }
    out += ']';
  } else if (v.is_object()) {
    append_members(out, v.object(), false, ordered);
  } else {
    append(out, v);
  }
}

}  // namespace pawl::json

// Functions on text, and conversions between text and values.

#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/letters.h"
#include "expr/functions.h"
#include "json/text.h"

namespace pawl::expr {

namespace {

// Size of the result of join(). A larger one fails the evaluation.
constexpr size_t kMaxJoined = 16 * 1024 * 1024;
// Parsing a byte of JSON costs as much as reading this many bytes.
constexpr size_t kParseFactor = 16;

// split() and splitAfter(): the parts of a text, at most `max` of them. An empty separator splits
// between characters.
Result<Value> split_text(Call& c, bool with_separator) {
  TRY(std::string_view text, c.text(0));
  TRY(std::string_view separator, c.text(1));
  int64_t max = -1;
  if (c.args.size() > 2) {
    TRY(max, c.whole(2));
  }
  List out;
  if (max == 0) return c.run.arena.keep(std::move(out));
  while (max < 0 || static_cast<int64_t>(out.size()) + 1 < max) {
    size_t cut = find_text(text, separator, c.run.arena), step = separator.size();
    if (separator.empty()) {
      cut = text.empty() ? 0 : 1;
      step = 0;
      while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80)
        ++cut;
      if (cut >= text.size()) break;
    }
    if (cut == std::string_view::npos) break;
    out.push_back(value_of(text.substr(0, with_separator ? cut + step : cut)));
    text.remove_prefix(cut + step);
  }
  if (!separator.empty() || !text.empty()) out.push_back(value_of(text));
  return c.run.arena.keep(std::move(out));
}

// Sorts the members of every object by name.
void sort_keys(json::Value& v) {
  if (v.is_array()) {
    for (json::Value& item : v.array())
      sort_keys(item);
  } else if (v.is_object()) {
    json::Object& o = v.object();
    std::sort(o.begin(), o.end(),
              [](const json::Member& a, const json::Member& b) { return a.name < b.name; });
    for (json::Member& m : o)
      sort_keys(m.value);
  }
}

}  // namespace

size_t find_text(std::string_view text, std::string_view part, Arena& arena) {
  if (part.empty()) return 0;
  const void* at = memmem(text.data(), text.size(), part.data(), part.size());
  const size_t place =
      at ? static_cast<size_t>(static_cast<const char*>(at) - text.data()) : std::string_view::npos;
  // Only the text before the place was searched: a loop over all places stays linear.
  arena.read(part.size() + (at ? place : text.size()));
  return place;
}

size_t find_last_text(std::string_view text, std::string_view part, Arena& arena) {
  if (part.size() > text.size()) return std::string_view::npos;
  // Searched backwards as a reversed text: memmem is linear, rfind is not.
  const std::string reversed(text.rbegin(), text.rend());
  const std::string wanted(part.rbegin(), part.rend());
  const size_t place = find_text(reversed, wanted, arena);
  arena.read(2 * text.size());
  return place == std::string_view::npos ? place : text.size() - place - part.size();
}

Result<Value> fn_trim(Call& c) {
  TRY(std::string_view text, c.text(0));
  std::string_view cut = " \t\r\n\v\f";
  if (c.args.size() > 1) {
    TRY(cut, c.text(1));
  }
  std::array<bool, 256> is_cut{};
  for (char ch : cut)
    is_cut[static_cast<unsigned char>(ch)] = true;
  while (!text.empty() && is_cut[static_cast<unsigned char>(text.front())])
    text.remove_prefix(1);
  while (!text.empty() && is_cut[static_cast<unsigned char>(text.back())])
    text.remove_suffix(1);
  return value_of(text);
}
Result<Value> fn_trim_prefix(Call& c) {
  TRY(std::string_view text, c.text(0));
  std::string_view cut = " ";
  if (c.args.size() > 1) {
    TRY(cut, c.text(1));
  }
  return value_of(text.starts_with(cut) ? text.substr(cut.size()) : text);
}
Result<Value> fn_trim_suffix(Call& c) {
  TRY(std::string_view text, c.text(0));
  std::string_view cut = " ";
  if (c.args.size() > 1) {
    TRY(cut, c.text(1));
  }
  return value_of(text.ends_with(cut) ? text.substr(0, text.size() - cut.size()) : text);
}
Result<Value> fn_upper(Call& c) {
  TRY(std::string_view text, c.text(0));
  return value_of(c.run.arena.keep(upper_case(text)));
}
Result<Value> fn_lower(Call& c) {
  TRY(std::string_view text, c.text(0));
  return value_of(c.run.arena.keep(lower_case(text)));
}
Result<Value> fn_split(Call& c) { return split_text(c, false); }
Result<Value> fn_split_after(Call& c) { return split_text(c, true); }

Result<Value> fn_replace(Call& c) {
  TRY(std::string_view text, c.text(0));
  TRY(std::string_view from, c.text(1));
  TRY(std::string_view to, c.text(2));
  int64_t max = -1;
  if (c.args.size() > 3) {
    TRY(max, c.whole(3));
  }
  if (from.empty()) return c.bad("wants something to replace");
  std::string out;
  for (size_t cut; max != 0 && (cut = find_text(text, from, c.run.arena)) != std::string_view::npos;
       --max) {
    out.append(text.substr(0, cut)).append(to);
    if (out.size() > kMaxTextResult) return c.bad("the result is longer than 1 MiB");
    text.remove_prefix(cut + from.size());
  }
  return value_of(c.run.arena.keep(out.append(text)));
}

Result<Value> fn_repeat(Call& c) {
  TRY(std::string_view text, c.text(0));
  TRY(int64_t times, c.whole(1));
  if (times < 0) return c.bad("wants a count that is not negative");
  if (!text.empty() && static_cast<uint64_t>(times) > kMaxTextResult / text.size())
    return c.bad("the result is longer than 1 MiB");
  std::string out;
  for (int64_t i = 0; i < times && !text.empty(); ++i)
    out += text;
  return value_of(c.run.arena.keep(std::move(out)));
}

Result<Value> fn_join(Call& c) {
  TRY(Value list, c.list(0));
  std::string_view separator;
  if (c.args.size() > 1) {
    TRY(separator, c.text(1));
  }
  std::string out;
  for (size_t i = 0; i < size(list); ++i) {
    Value v = element(list, i);
    if (v.kind != Kind::string)
      return c.bad("wants a list of strings; element " + std::to_string(i) + " is a " +
                   std::string(kind_name(v.kind)));
    if (i) out += separator;
    out += v.text;
    // One text may stand in the list many times.
    if (out.size() > kMaxJoined) return c.bad("the result is longer than 16 MiB");
  }
  return value_of(c.run.arena.keep(std::move(out)));
}

Result<Value> fn_index_of(Call& c) {
  TRY(std::string_view text, c.text(0));
  TRY(std::string_view part, c.text(1));
  size_t at = find_text(text, part, c.run.arena);
  return value_of(at == std::string_view::npos ? int64_t{-1} : static_cast<int64_t>(at));
}
Result<Value> fn_last_index_of(Call& c) {
  TRY(std::string_view text, c.text(0));
  TRY(std::string_view part, c.text(1));
  size_t at = find_last_text(text, part, c.run.arena);
  return value_of(at == std::string_view::npos ? int64_t{-1} : static_cast<int64_t>(at));
}
Result<Value> fn_has_prefix(Call& c) {
  TRY(std::string_view text, c.text(0));
  TRY(std::string_view part, c.text(1));
  return value_of(text.starts_with(part));
}
Result<Value> fn_has_suffix(Call& c) {
  TRY(std::string_view text, c.text(0));
  TRY(std::string_view part, c.text(1));
  return value_of(text.ends_with(part));
}

Result<Value> fn_to_json(Call& c) {
  TRY(json::Value v, to_json(c.args[0], c.run.arena));
  sort_keys(v);
  return value_of(c.run.arena.keep(json::print_pretty(v)));
}
Result<Value> fn_from_json(Call& c) {
  TRY(std::string_view text, c.text(0));
  c.run.arena.read(text.size() * kParseFactor);
  if (c.run.arena.full()) return Value{};
  auto parsed = json::parse(text);
  if (!parsed) return c.bad(parsed.error().message);
  return c.run.arena.keep(std::move(*parsed));
}
Result<Value> fn_to_base64(Call& c) {
  TRY(std::string_view text, c.text(0));
  return value_of(c.run.arena.keep(base64(text)));
}
Result<Value> fn_from_base64(Call& c) {
  TRY(std::string_view text, c.text(0));
  auto bytes = unbase64(text);
  if (!bytes) return c.bad("the text is not Base64");
  return value_of(c.run.arena.keep(std::move(*bytes)));
}

}  // namespace pawl::expr

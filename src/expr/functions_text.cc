// Functions on text, and conversions between text and values.

#include "base/bytes.h"
#include "base/letters.h"
#include "expr/functions.h"
#include "json/text.h"

namespace pawl::expr {

namespace {

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
    size_t cut = text.find(separator), step = separator.size();
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

Result<Value> fn_trim(Call& c) {
  TRY(std::string_view text, c.text(0));
  std::string_view cut = " \t\r\n\v\f";
  if (c.args.size() > 1) {
    TRY(cut, c.text(1));
  }
  size_t begin = text.find_first_not_of(cut);
  if (begin == std::string_view::npos) return value_of(std::string_view());
  return value_of(text.substr(begin, text.find_last_not_of(cut) - begin + 1));
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
  for (size_t cut; max != 0 && (cut = text.find(from)) != std::string_view::npos; --max) {
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
  }
  return value_of(c.run.arena.keep(std::move(out)));
}

Result<Value> fn_index_of(Call& c) {
  TRY(std::string_view text, c.text(0));
  TRY(std::string_view part, c.text(1));
  size_t at = text.find(part);
  return value_of(at == std::string_view::npos ? int64_t{-1} : static_cast<int64_t>(at));
}
Result<Value> fn_last_index_of(Call& c) {
  TRY(std::string_view text, c.text(0));
  TRY(std::string_view part, c.text(1));
  size_t at = text.rfind(part);
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
  TRY(json::Value v, to_json(c.args[0]));
  sort_keys(v);
  return value_of(c.run.arena.keep(json::print_pretty(v)));
}
Result<Value> fn_from_json(Call& c) {
  TRY(std::string_view text, c.text(0));
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

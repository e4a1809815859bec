#include "expr/value.h"

#include <cmath>

#include "base/calendar.h"
#include "base/utf8.h"
#include "json/text.h"

namespace pawl::expr {

Value value_of(const json::Value& v) {
  if (v.is_null()) return {};
  if (v.is_bool()) return value_of(v.boolean());
  if (v.is_string()) return value_of(std::string_view(v.string()));
  if (v.is_array()) return {.kind = Kind::list, .json = &v};
  if (v.is_object()) return {.kind = Kind::map, .json = &v};
  const std::string& digits = v.number_text();
  Value out{.kind = Kind::real, .json = &v};
  int64_t whole = 0;
  auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (failed == std::errc() && end == digits.data() + digits.size()) {
    out.exact = true;
    out.whole = whole;
    out.number = static_cast<double>(whole);
    return out;
  }
  out.number = v.as_double();
  return out;
}

Value exact_real(int64_t v) {
  return {.kind = Kind::real, .exact = true, .whole = v, .number = static_cast<double>(v)};
}

Value time_value(Time v) {
  int64_t seconds = v / kSecond - (v % kSecond < 0);
  return value_of(ZonedTime{seconds, static_cast<int32_t>(v - seconds * kSecond), nullptr});
}

namespace {
struct KindRow {
  std::string_view name, type;
};
constexpr KindRow kKinds[] = {
    {"nil", "nil"},
    {"boolean", "bool"},
    {"number", "int"},
    {"number", "float"},
    {"string", "string"},
    {"list", "array"},
    {"map", "map"},
    {"time", "time.Time"},
    {"duration", "time.Duration"},
    {"time zone", "time.Location"},
    {"member of a map", ""},
};
}  // namespace

std::string_view kind_name(Kind kind) { return kKinds[static_cast<size_t>(kind)].name; }
std::string_view type_name(const Value& v) { return kKinds[static_cast<size_t>(v.kind)].type; }

size_t size(const Value& v) {
  if (v.kind == Kind::list) return v.json ? v.json->array().size() : v.list->size();
  if (v.kind == Kind::map) return v.json ? v.json->object().size() : v.map->size();
  return 0;
}

Value element(const Value& list, size_t i) {
  return list.json ? value_of(list.json->array()[i]) : (*list.list)[i];
}

bool member(const Value& map, std::string_view key, Value& out) {
  if (map.json) {
    const json::Value* found = map.json->find(key);
    if (found) out = value_of(*found);
    return found != nullptr;
  }
  for (const auto& [name, value] : *map.map) {
    if (name != key) continue;
    out = value;
    return true;
  }
  return false;
}

std::pair<std::string_view, Value> entry(const Value& map, size_t i) {
  if (!map.json) return (*map.map)[i];
  const json::Member& m = map.json->object().begin()[static_cast<ptrdiff_t>(i)];
  return {m.name, value_of(m.value)};
}

int compare_numbers(const Value& a, const Value& b) {
  bool both_whole = (a.kind == Kind::integer || a.exact) && (b.kind == Kind::integer || b.exact);
  if (both_whole && a.kind == b.kind) return a.whole < b.whole ? -1 : a.whole > b.whole;
  double x = a.as_double(), y = b.as_double();
  return x < y ? -1 : x > y;
}

int compare_times(const Value& a, const Value& b) {
  if (a.whole != b.whole) return a.whole < b.whole ? -1 : 1;
  return a.nanos < b.nanos ? -1 : a.nanos > b.nanos;
}

namespace {

// Deep equality of map members, in which 5 and 5.0 differ because their kinds do.
bool identical(const Value& a, const Value& b, Arena& arena) {
  if (a.kind != b.kind) return false;
  if (a.kind == Kind::list) {
    if (size(a) != size(b)) return false;
    for (size_t i = 0; i < size(a); ++i) {
      arena.read(Arena::kElementBytes);
      if (arena.full() || !identical(element(a, i), element(b, i), arena)) return false;
    }
    return true;
  }
  return equal(a, b, arena);
}

bool equal_texts(std::string_view a, std::string_view b, Arena& arena) {
  if (a.size() != b.size()) return false;
  arena.read(a.size());
  return a == b;
}

bool equal_maps(const Value& a, const Value& b, Arena& arena) {
  if (size(a) != size(b)) return false;
  for (size_t i = 0; i < size(a); ++i) {
    auto [name, value] = entry(a, i);
    // The search for the member is linear.
    arena.read(size(b) * Arena::kElementBytes);
    Value other;
    if (arena.full() || !member(b, name, other) || !identical(value, other, arena)) return false;
  }
  return true;
}

}  // namespace

bool equal(const Value& a, const Value& b, Arena& arena) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::nil: return true;
    case Kind::string: return equal_texts(a.text, b.text, arena);
    case Kind::zone: return a.text == b.text;
    case Kind::list: {
      if (size(a) != size(b)) return false;
      for (size_t i = 0; i < size(a); ++i) {
        arena.read(Arena::kElementBytes);
        if (arena.full() || !equal(element(a, i), element(b, i), arena)) return false;
      }
      return true;
    }
    case Kind::map: return equal_maps(a, b, arena);
    default: return compare_times(a, b) == 0;  // nanos is 0 in booleans and durations
  }
}

namespace {

// The shortest text that reads back as the same number. Whole numbers below 10^21 have no fraction
// and no exponent.
std::string number_text(double v) {
  char buffer[64];
  bool plain = v == std::floor(v) && std::fabs(v) < 1e21;
  auto [end, failed] =
      plain ? std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific)
            : std::to_chars(buffer, buffer + sizeof buffer, v);
  CHECK(failed == std::errc());
  std::string text(buffer, end);
  if (!plain) return text;
  if (v == 0) return "0";
  size_t e = text.find('e');
  size_t places = std::stoul(text.substr(e + 2)) + 1 + (v < 0);
  text.resize(e);
  std::erase(text, '.');
  text.resize(places, '0');
  return text;
}

}  // namespace

namespace {

std::unexpected<Error> too_deep() {
  return fail(Code::invalid, "TOO_DEEP",
              "the result is nested more than " + std::to_string(kMaxValueDepth) + " deep");
}

// True when the value has at most `left` levels of nesting.
bool fits(const json::Value& v, size_t left) {
  if (v.is_array())
    return left && std::all_of(v.array().begin(), v.array().end(),
                               [&](const json::Value& item) { return fits(item, left - 1); });
  if (v.is_object())
    return left && std::all_of(v.object().begin(), v.object().end(),
                               [&](const json::Member& m) { return fits(m.value, left - 1); });
  return true;
}

// Bytes that one value of the result counts as read. The JSON of a result is limited to a few MiB,
// so an honest result has far fewer values than this allows.
constexpr size_t kJsonValueBytes = 64;

std::unexpected<Error> too_large() {
  return fail(Code::exhausted, "RESULT_TOO_LARGE",
              "the result has more values than an expression may make");
}

size_t count_values(const json::Value& v) {
  size_t sum = 1;
  if (v.is_array())
    for (const json::Value& item : v.array())
      sum += count_values(item);
  if (v.is_object())
    for (const json::Member& m : v.object())
      sum += count_values(m.value);
  return sum;
}

Result<json::Value> copy_of(const json::Value& v, size_t left, Arena& arena) {
  if (!fits(v, left)) return too_deep();
  arena.read(count_values(v) * kJsonValueBytes);
  if (arena.exhausted()) return too_large();
  return v;
}

Result<json::Value> time_json(const Value& v) {
  int64_t year = civil_of(v.whole + period_at(v.zone, v.whole).offset).year;
  if (year < 0 || year > 9999)
    return fail(Code::invalid, "NO_JSON_FORM",
                "the result is a time in the year " + std::to_string(year) +
                    ", outside the years 0 to 9999 that can be written");
  return json::Value(print_time(v.zoned_time(), kRfc3339));
}

Result<json::Value> to_json(const Value& v, size_t left, Arena& arena);

Result<json::Value> list_json(const Value& v, size_t left, Arena& arena) {
  if (v.json) return copy_of(*v.json, left, arena);
  if (!left) return too_deep();
  json::Array out;
  out.reserve(v.list->size());
  for (const Value& item : *v.list) {
    TRY(json::Value one, to_json(item, left - 1, arena));
    out.push_back(std::move(one));
  }
  return json::Value(std::move(out));
}

Result<json::Value> map_json(const Value& v, size_t left, Arena& arena) {
  if (v.keys_not_text)
    return fail(Code::invalid, "NO_JSON_FORM",
                "the result is a map whose keys are not declared as text, which has no JSON form; "
                "pick a member of it or use map()");
  if (v.json) return copy_of(*v.json, left, arena);
  if (!left) return too_deep();
  json::Object out;
  for (const auto& [name, item] : *v.map) {
    TRY(json::Value one, to_json(item, left - 1, arena));
    // The search for a member of the same name is linear.
    arena.read(out.size() * Arena::kElementBytes);
    out.set(as_utf8(name), std::move(one));
  }
  return json::Value(std::move(out));
}

Result<json::Value> to_json(const Value& v, size_t left, Arena& arena) {
  arena.read(kJsonValueBytes + v.text.size());
  if (arena.exhausted()) return too_large();
  switch (v.kind) {
    case Kind::nil: return json::Value();
    case Kind::boolean: return json::Value(v.is_true());
    case Kind::integer: return json::Value(v.whole);
    case Kind::duration: return json::Value(v.whole);
    case Kind::time: return time_json(v);
    case Kind::zone: return json::Value(json::Object{});
    case Kind::string: return json::Value(as_utf8(v.text));  // a slice may cut a character
    case Kind::real:
      if (v.json) return *v.json;
      if (v.exact) return json::Value(v.whole);
      if (!std::isfinite(v.number))
        return fail(Code::invalid, "NO_JSON_FORM",
                    "the result is infinite or not a number, which JSON cannot hold; check for "
                    "division by zero and overflow");
      return json::Value(json::Number{number_text(v.number)});
    case Kind::list: return list_json(v, left, arena);
    case Kind::map: return map_json(v, left, arena);
    case Kind::member: break;
  }
  return fail(Code::invalid, "NO_JSON_FORM", "the result is a member of a map");
}

}  // namespace

Result<json::Value> to_json(const Value& v, Arena& arena) {
  return to_json(v, kMaxValueDepth, arena);
}

namespace {

// Bytes that a value counts as read when it is printed, beside its text.
constexpr size_t kPrintedValueBytes = 64;

// Prints 1h30m5.25s, and below a second 100ms, 3µs or 7ns.
void append_duration(std::string& out, int64_t nanos) {
  uint64_t left = nanos < 0 ? -static_cast<uint64_t>(nanos) : static_cast<uint64_t>(nanos);
  auto fraction = [](uint64_t amount, uint64_t unit) {
    std::string digits = std::to_string(unit + amount % unit).substr(1);
    while (digits.ends_with('0'))
      digits.pop_back();
    return std::to_string(amount / unit) + (digits.empty() ? "" : "." + digits);
  };
  if (nanos < 0) out += '-';
  if (left == 0)
    out += "0s";
  else if (left < 1'000)
    out += std::to_string(left) + "ns";
  else if (left < 1'000'000)
    out += fraction(left, 1'000) + "µs";
  else if (left < 1'000'000'000)
    out += fraction(left, 1'000'000) + "ms";
  else {
    uint64_t minutes = left / 60'000'000'000;
    if (minutes >= 60) out += std::to_string(minutes / 60) + "h";
    if (minutes) out += std::to_string(minutes % 60) + "m";
    out += fraction(left % 60'000'000'000, 1'000'000'000) + "s";
  }
}

}  // namespace

void append_text(std::string& out, const Value& v, Arena& arena) {
  // One value may stand in many lists, so the text may be much longer than the value.
  arena.read(kPrintedValueBytes + 8 * v.text.size());
  if (arena.exhausted()) return;
  switch (v.kind) {
    case Kind::nil:
    case Kind::member: out += "<nil>"; return;
    case Kind::boolean: out += v.is_true() ? "true" : "false"; return;
    case Kind::integer:
      if (v.text.empty())
        out += std::to_string(v.whole);
      else
        out += v.text;
      return;
    case Kind::real:
      if (v.exact)
        out += std::to_string(v.whole);
      else if (std::isinf(v.number))
        out += v.number > 0 ? "+Inf" : "-Inf";
      else if (std::isnan(v.number))
        out += "NaN";
      else
        out += number_text(v.number);
      return;
    case Kind::string:
    case Kind::zone: out += v.text; return;
    case Kind::time: out += print_time(v.zoned_time(), kPlainTime); return;
    case Kind::duration: append_duration(out, v.whole); return;
    case Kind::list:
      out += '[';
      for (size_t i = 0; i < size(v); ++i) {
        if (i) out += ' ';
        append_text(out, element(v, i), arena);
      }
      out += ']';
      return;
    case Kind::map: {
      std::vector<std::pair<std::string_view, Value>> members;
      for (size_t i = 0; i < size(v); ++i)
        members.push_back(entry(v, i));
      std::sort(members.begin(), members.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      out += "map[";
      for (size_t i = 0; i < members.size(); ++i) {
        if (i) out += ' ';
        out.append(members[i].first) += ':';
        append_text(out, members[i].second, arena);
      }
      out += ']';
      return;
    }
  }
}

}  // namespace pawl::expr

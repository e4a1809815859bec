// Functions and methods of times and durations.

#include "base/calendar.h"
#include "expr/functions.h"

namespace pawl::expr {

Result<Value> fn_now(Call& c) {
  Value now = time_value(c.run.now);
  if (c.args.empty()) return now;
  if (c.args[0].kind != Kind::zone)
    return c.bad("wants a time zone, got " + std::string(kind_name(c.args[0].kind)));
  now.zone = c.args[0].zone;
  return now;
}

namespace {
// The zone with this name, kept in the arena; null for UTC.
Result<const Zone*> zone_of(Call& c, std::string_view name) {
  std::optional<Zone> zone = find_zone(name);
  if (!zone)
    return c.bad("unknown time zone '" + std::string(name.substr(0, 80)) +
                 "'; write it as 'Europe/Berlin'");
  return zone->name == "UTC" ? nullptr : c.run.arena.keep(std::move(*zone));
}
}  // namespace

Result<Value> fn_timezone(Call& c) {
  TRY(std::string_view name, c.text(0));
  TRY(const Zone* zone, zone_of(c, name));
  return Value{
      .kind = Kind::zone, .text = zone ? std::string_view(zone->name) : "UTC", .zone = zone};
}

namespace {
struct Unit {
  std::string_view name;
  int64_t nanos;
};
constexpr Unit kUnits[] = {{"ns", 1},           {"us", 1'000},        {"µs", 1'000},
                           {"μs", 1'000},       {"ms", kMillisecond}, {"s", kSecond},
                           {"m", 60 * kSecond}, {"h", 3600 * kSecond}};

// Reads "1.5h" from the front of the text. Returns nanoseconds, which may be more than a duration
// holds.
std::optional<__int128> read_amount(std::string_view& left) {
  __int128 whole = 0, part = 0, parts = 1;
  size_t digits = 0;
  bool fraction = false;
  for (; !left.empty(); left.remove_prefix(1)) {
    bool digit = left[0] >= '0' && left[0] <= '9';
    if (!digit && (fraction || left[0] != '.')) break;
    fraction = fraction || !digit;
    if (!digit) continue;
    ++digits;
    if (!fraction) whole = std::min<__int128>(whole * 10 + (left[0] - '0'), INT64_MAX);
    if (fraction && parts < kSecond * kSecond) {
      part = part * 10 + (left[0] - '0');
      parts *= 10;
    }
  }
  const Unit* best = nullptr;
  for (const Unit& u : kUnits)
    if (left.starts_with(u.name) && (!best || u.name.size() > best->name.size())) best = &u;
  if (!digits || !best) return std::nullopt;
  left.remove_prefix(best->name.size());
  return whole * best->nanos + part * best->nanos / parts;
}
}  // namespace

Result<Value> fn_duration(Call& c) {
  TRY(std::string_view text, c.text(0));
  std::string_view left = text;
  bool minus = left.starts_with('-');
  if (minus || left.starts_with('+')) left.remove_prefix(1);
  __int128 nanos = 0;
  if (left == "0") return duration_value(0);
  do {
    std::optional<__int128> one = read_amount(left);
    if (!one)
      return c.bad("'" + std::string(text.substr(0, 80)) +
                   "' is not a duration such as '1h30m'; the units are ns, us, ms, s, m and h");
    nanos += *one;
    if (nanos > INT64_MAX)
      return c.bad("'" + std::string(text.substr(0, 80)) + "' is longer than 292 years");
  } while (!left.empty());
  return duration_value(static_cast<int64_t>(minus ? -nanos : nanos));
}

Result<Value> fn_date(Call& c) {
  constexpr std::string_view layouts[] = {"2006-01-02",
                                          "15:04:05",
                                          "2006-01-02 15:04:05",
                                          "2006-01-02T15:04:05Z07:00",
                                          "02 Jan 06 15:04 MST",
                                          "Monday, 02-Jan-06 15:04:05 MST",
                                          "Mon, 02 Jan 2006 15:04:05 MST"};
  auto keep = [&](Zone zone) { return c.run.arena.keep(std::move(zone)); };
  size_t first = c.args[0].kind == Kind::zone, given = c.args.size() - first;
  const Zone* zone = first ? c.args[0].zone : nullptr;
  if (given < 1 || given > 3)
    return c.bad("wants a text, and perhaps a layout and the name of a time zone");
  TRY(std::string_view text, c.text(first));
  if (given == 1) {
    for (std::string_view layout : layouts)
      if (auto parsed = read_time(text, layout, zone, keep)) return value_of(*parsed);
    return c.bad(
        "'" + std::string(text.substr(0, 80)) +
        "' is not a date; write '2024-01-15', '2024-01-15 10:00:00', RFC 3339, or say its layout");
  }
  TRY(std::string_view layout, c.text(first + 1));
  if (given == 3) {
    TRY(std::string_view name, c.text(first + 2));
    TRY(zone, zone_of(c, name));
  }
  auto parsed = read_time(text, layout, zone, keep);
  if (!parsed) return c.bad(parsed.error().message);
  return value_of(*parsed);
}

namespace {

constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};
constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};

int64_t local_seconds(const Value& v) { return v.whole + period_at(v.zone, v.whole).offset; }
Civil local_civil(const Value& v) { return civil_of(local_seconds(v)); }
// An integer that prints as its name, for months and weekdays.
Value named_integer(int64_t v, std::string_view name) {
  return {.kind = Kind::integer, .whole = v, .text = name};
}

// Time since 1970 in units of which a second has `per_second`. It wraps around on overflow, as in
// Go.
int64_t nanos_since(const Value& v, uint64_t per_second) {
  return static_cast<int64_t>(static_cast<uint64_t>(v.whole) * per_second +
                              static_cast<uint64_t>(v.nanos) / (kSecond / per_second));
}

struct Method {
  std::string_view name;
  Type result;
  std::span<const Kind> arguments;
  Result<Value> (*run)(Evaluation& run, const Value& self, std::span<const Value> args, size_t at);
};

constexpr std::span<const Kind> kNoArguments;
constexpr Kind kTime[] = {Kind::time}, kDuration[] = {Kind::duration}, kText[] = {Kind::string},
               kZone[] = {Kind::zone};
constexpr Kind kThreeInts[] = {Kind::integer, Kind::integer, Kind::integer};

// A method without arguments that depends only on the value.
template <Value (*read)(const Value& v)>
Result<Value> getter(Evaluation&, const Value& self, std::span<const Value>, size_t) {
  return read(self);
}

Result<Value> text_of(Evaluation& run, const Value& self, std::span<const Value>, size_t) {
  std::string out;
  append_text(out, self, run.arena);
  return value_of(run.arena.keep(std::move(out)));
}

// Adds years, months and days. A day past the end of its month counts into the next month.
Result<Value> add_date(Evaluation&, const Value& self, std::span<const Value> by, size_t at) {
  constexpr int64_t max = 10'000'000;
  auto too_far = [&] { return error_at(at, "AddDate leads more than a million years away"); };
  if (std::any_of(by.begin(), by.end(),
                  [](const Value& v) { return v.whole < -max || v.whole > max; }))
    return too_far();
  Civil c = local_civil(self);
  int64_t months = c.month - 1 + by[1].whole, over = months / 12 - (months % 12 < 0);
  c.year += by[0].whole + over;
  c.month = static_cast<int>(months - over * 12) + 1;
  int64_t local_seconds = seconds_of(c) + 86400 * by[2].whole;
  if (std::abs(local_seconds) > kMaxSeconds) return too_far();
  return value_of(ZonedTime{utc_of(self.zone, local_seconds), self.nanos, self.zone});
}

// Truncates or rounds (half up) a time to a multiple of `unit` since the year 1.
Value to_units(const Value& self, int64_t unit, bool rounded) {
  if (unit <= 0) return self;
  const __int128 first = static_cast<__int128>(-62135596800) * kSecond;
  __int128 nanos = static_cast<__int128>(self.whole) * kSecond + self.nanos,
           rest = (nanos - first) % unit;
  if (rest < 0) rest += unit;
  nanos += rounded && rest + rest >= unit ? unit - rest : -rest;
  __int128 seconds = nanos / kSecond - (nanos % kSecond < 0);
  return value_of(ZonedTime{static_cast<int64_t>(seconds),
                            static_cast<int32_t>(nanos - seconds * kSecond), self.zone});
}

// Truncates or rounds (half away from zero) a duration to a multiple of `unit`.
Value duration_to_units(int64_t length, int64_t unit, bool rounded) {
  if (unit <= 0) return duration_value(length);
  int64_t rest = length % unit;
  __int128 out = static_cast<__int128>(length) - rest;
  int64_t size = rest < 0 ? -rest : rest;
  if (rounded && size >= unit - size) out += length < 0 ? -unit : unit;
  return duration_value(static_cast<int64_t>(std::clamp<__int128>(out, INT64_MIN, INT64_MAX)));
}

constexpr Method kTimeMethods[] = {
    {"Year", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(local_civil(v).year); }>},
    {"Month", Type::number, kNoArguments, getter<[](const Value& v) {
       return named_integer(local_civil(v).month, kMonths[local_civil(v).month - 1]);
     }>},
    {"Day", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(int64_t{local_civil(v).day}); }>},
    {"Hour", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(int64_t{local_civil(v).hour}); }>},
    {"Minute", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(int64_t{local_civil(v).minute}); }>},
    {"Second", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(int64_t{local_civil(v).second}); }>},
    {"Nanosecond", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(int64_t{v.nanos}); }>},
    {"Weekday", Type::number, kNoArguments, getter<[](const Value& v) {
       return named_integer(weekday_of(local_seconds(v)), kDays[weekday_of(local_seconds(v))]);
     }>},
    {"YearDay", Type::number, kNoArguments, getter<[](const Value& v) {
       return value_of(
           (local_seconds(v) - seconds_of({.year = local_civil(v).year, .month = 1, .day = 1})) /
               86400 +
           1);
     }>},
    {"Unix", Type::number, kNoArguments, getter<[](const Value& v) { return value_of(v.whole); }>},
    {"UnixMilli", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(nanos_since(v, 1'000)); }>},
    {"UnixMicro", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(nanos_since(v, 1'000'000)); }>},
    {"UnixNano", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(nanos_since(v, kSecond)); }>},
    {"UTC", Type::time, kNoArguments, getter<[](const Value& v) {
       return value_of(ZonedTime{v.whole, v.nanos, nullptr});
     }>},
    {"Local", Type::time, kNoArguments, getter<[](const Value& v) {
       return value_of(ZonedTime{v.whole, v.nanos, nullptr});
     }>},
    {"IsZero", Type::boolean, kNoArguments,
     getter<[](const Value& v) { return value_of(v.whole == -62135596800 && v.nanos == 0); }>},
    {"IsDST", Type::boolean, kNoArguments,
     getter<[](const Value& v) { return value_of(period_at(v.zone, v.whole).daylight_saving); }>},
    {"Location", Type::zone, kNoArguments, getter<[](const Value& v) {
       return Value{.kind = Kind::zone,
                    .text = v.zone ? std::string_view(v.zone->name) : "UTC",
                    .zone = v.zone};
     }>},
    {"Zone", Type::string, kNoArguments,
     [](Evaluation& run, const Value& self, std::span<const Value>, size_t) -> Result<Value> {
       return value_of(run.arena.keep(print_time(self.zoned_time(), "MST")));
     }},
    {"String", Type::string, kNoArguments, text_of},
    {"Format", Type::string, kText,
     [](Evaluation& run, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return value_of(run.arena.keep(print_time(self.zoned_time(), args[0].text)));
     }},
    {"In", Type::time, kZone,
     [](Evaluation&, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return value_of(ZonedTime{self.whole, self.nanos, args[0].zone});
     }},
    {"Add", Type::time, kDuration,
     [](Evaluation& run, const Value& self, std::span<const Value> args, size_t at) {
       return arithmetic(Op::add, self, args[0], run.arena, at);
     }},
    {"Sub", Type::duration, kTime,
     [](Evaluation& run, const Value& self, std::span<const Value> args, size_t at) {
       return arithmetic(Op::subtract, self, args[0], run.arena, at);
     }},
    {"AddDate", Type::time, kThreeInts, add_date},
    {"Truncate", Type::time, kDuration,
     [](Evaluation&, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return to_units(self, args[0].whole, false);
     }},
    {"Round", Type::time, kDuration,
     [](Evaluation&, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return to_units(self, args[0].whole, true);
     }},
    {"Before", Type::boolean, kTime,
     [](Evaluation&, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return value_of(compare_times(self, args[0]) < 0);
     }},
    {"After", Type::boolean, kTime,
     [](Evaluation&, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return value_of(compare_times(self, args[0]) > 0);
     }},
    {"Equal", Type::boolean, kTime,
     [](Evaluation&, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return value_of(compare_times(self, args[0]) == 0);
     }},
    {"Compare", Type::number, kTime,
     [](Evaluation&, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return value_of(int64_t{compare_times(self, args[0])});
     }},
};
constexpr Method kDurationMethods[] = {
    {"Hours", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(static_cast<double>(v.whole) / 3600e9); }>},
    {"Minutes", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(static_cast<double>(v.whole) / 60e9); }>},
    {"Seconds", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(static_cast<double>(v.whole) / 1e9); }>},
    {"Milliseconds", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(v.whole / kMillisecond); }>},
    {"Microseconds", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(v.whole / kMicrosecond); }>},
    {"Nanoseconds", Type::number, kNoArguments,
     getter<[](const Value& v) { return value_of(v.whole); }>},
    {"Abs", Type::duration, kNoArguments, getter<[](const Value& v) {
       return duration_value(v.whole == INT64_MIN ? INT64_MAX : v.whole < 0 ? -v.whole : v.whole);
     }>},
    {"String", Type::string, kNoArguments, text_of},
    {"Truncate", Type::duration, kDuration,
     [](Evaluation&, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return duration_to_units(self.whole, args[0].whole, false);
     }},
    {"Round", Type::duration, kDuration,
     [](Evaluation&, const Value& self, std::span<const Value> args, size_t) -> Result<Value> {
       return duration_to_units(self.whole, args[0].whole, true);
     }},
};
constexpr Method kStringMethods[] = {{"String", Type::string, kNoArguments, text_of}};

const Method* find_method(std::span<const Method> methods, std::string_view name) {
  for (const Method& m : methods)
    if (m.name == name) return &m;
  return nullptr;
}

}  // namespace

Type method_type(Type self, std::string_view name) {
  std::span<const Method> methods;
  if (self == Type::time) methods = kTimeMethods;
  if (self == Type::duration) methods = kDurationMethods;
  const Method* m = find_method(methods, name);
  return m ? m->result : Type::any;
}

Result<Value> method(Evaluation& run, std::string_view name, const Value& self,
                     std::span<const Value> args, size_t at) {
  std::span<const Method> methods;
  if (self.kind == Kind::time) methods = kTimeMethods;
  if (self.kind == Kind::duration) methods = kDurationMethods;
  if (self.kind == Kind::zone || (self.kind == Kind::integer && !self.text.empty()))
    methods = kStringMethods;
  const Method* m = find_method(methods, name);
  if (!m)
    return error_at(
        at, "a " + std::string(kind_name(self.kind)) + " has no method " + std::string(name));
  std::span<const Kind> wanted = m->arguments;
  if (wanted.size() != args.size())
    return error_at(at, std::string(name) + " takes " + std::to_string(wanted.size()) +
                            " arguments, got " + std::to_string(args.size()));
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind == wanted[i]) continue;
    std::string_view word =
        wanted[i] == Kind::integer ? "int (write int(x) for a variable)" : kind_name(wanted[i]);
    return error_at(at, std::string(name) + " wants a " + std::string(word) + ", got " +
                            std::string(kind_name(args[i].kind)));
  }
  return m->run(run, self, args, at);
}

}  // namespace pawl::expr

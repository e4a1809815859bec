// Times and durations: their functions and methods.

#include "expr/functions.h"

namespace pawl::expr {

Result<Value> fn_now(Call& c) { return of_time(c.run.now); }

Result<Value> fn_timezone(Call& c) {
  TRY(std::string_view name, c.text(0));
  if (name != "UTC") return c.bad("only 'UTC' is known, got '" + std::string(name) + "'");
  return Value{.kind = Kind::zone, .text = "UTC"};
}

namespace {
struct Unit {
  std::string_view name;
  double nanos;
};
constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
}  // namespace

Result<Value> fn_duration(Call& c) {
  TRY(std::string_view text, c.text(0));
  std::string_view left = text;
  bool minus = left.starts_with('-');
  if (minus || left.starts_with('+')) left.remove_prefix(1);
  if (left.empty()) return c.bad("'" + std::string(text) + "' is not a duration such as '1h30m'");
  double nanos = 0;
  while (!left.empty() && left != "0") {
    double amount = 0;
    auto [end, failed] = std::from_chars(left.data(), left.data() + left.size(), amount, std::chars_format::fixed);
    if (failed != std::errc() || amount < 0) return c.bad("'" + std::string(text) + "' is not a duration such as '1h30m'");
    left.remove_prefix(static_cast<size_t>(end - left.data()));
    const Unit* best = nullptr;
    for (const Unit& u : kUnits)
      if (left.starts_with(u.name) && (!best || u.name.size() > best->name.size())) best = &u;
    if (!best) return c.bad("'" + std::string(text) + "' lacks a unit: ns, us, ms, s, m or h");
    nanos += amount * best->nanos;
    left.remove_prefix(best->name.size());
  }
  if (nanos > 9e18) return c.bad("the duration is too long");
  return of_duration(static_cast<int64_t>(minus ? -nanos : nanos));
}

Result<Value> fn_date(Call& c) {
  TRY(std::string_view text, c.text(0));
  std::string full(text);
  if (full.size() == 10) full += "T00:00:00Z";
  else if (full.size() == 19) full += "Z";
  auto time = parse_rfc3339(full);
  if (!time) return c.bad("'" + std::string(text) + "' is not a date; write '2024-01-15', '2024-01-15 10:00:00' or RFC 3339");
  return of_time(*time);
}

namespace {

constexpr std::string_view kMonths[] = {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"};
constexpr std::string_view kDays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr Time kDay = 86400 * kSecond;

int weekday(Time t) {
  int64_t days = t / kDay - (t % kDay < 0);
  return static_cast<int>(((days % 7) + 11) % 7);
}

std::string padded(int64_t v, size_t digits) {
  std::string s = std::to_string(v);
  return s.size() < digits ? std::string(digits - s.size(), '0') + s : s;
}

// A layout piece of Go's reference time, and what stands for it.
struct Piece {
  std::string_view layout;
  std::string (*print)(const Civil& c, Time t);
};
constexpr Piece kPieces[] = {
    {"2006", [](const Civil& c, Time) { return padded(c.year, 4); }},
    {"January", [](const Civil& c, Time) { return std::string(kMonths[c.month - 1]); }},
    {"Jan", [](const Civil& c, Time) { return std::string(kMonths[c.month - 1].substr(0, 3)); }},
    {"Monday", [](const Civil&, Time t) { return std::string(kDays[weekday(t)]); }},
    {"Mon", [](const Civil&, Time t) { return std::string(kDays[weekday(t)].substr(0, 3)); }},
    {"MST", [](const Civil&, Time) { return std::string("UTC"); }},
    {"Z07:00", [](const Civil&, Time) { return std::string("Z"); }},
    {"-07:00", [](const Civil&, Time) { return std::string("+00:00"); }},
    {"-0700", [](const Civil&, Time) { return std::string("+0000"); }},
    {"01", [](const Civil& c, Time) { return padded(c.month, 2); }},
    {"02", [](const Civil& c, Time) { return padded(c.day, 2); }},
    {"03", [](const Civil& c, Time) { return padded((c.hour + 11) % 12 + 1, 2); }},
    {"04", [](const Civil& c, Time) { return padded(c.minute, 2); }},
    {"05", [](const Civil& c, Time) { return padded(c.second, 2); }},
    {"06", [](const Civil& c, Time) { return padded(c.year % 100, 2); }},
    {"15", [](const Civil& c, Time) { return padded(c.hour, 2); }},
    {"PM", [](const Civil& c, Time) { return std::string(c.hour < 12 ? "AM" : "PM"); }},
    {"pm", [](const Civil& c, Time) { return std::string(c.hour < 12 ? "am" : "pm"); }},
    {".000000", [](const Civil& c, Time) { return "." + padded(c.nanos / 1000, 6); }},
    {".000", [](const Civil& c, Time) { return "." + padded(c.nanos / 1000000, 3); }},
    {"1", [](const Civil& c, Time) { return std::to_string(c.month); }},
    {"2", [](const Civil& c, Time) { return std::to_string(c.day); }},
    {"3", [](const Civil& c, Time) { return std::to_string((c.hour + 11) % 12 + 1); }},
    {"4", [](const Civil& c, Time) { return std::to_string(c.minute); }},
    {"5", [](const Civil& c, Time) { return std::to_string(c.second); }},
};

std::string formatted(Time t, std::string_view layout) {
  Civil when = civil(t);
  std::string out;
  while (!layout.empty()) {
    const Piece* hit = nullptr;
    for (const Piece& p : kPieces) {
      if (!layout.starts_with(p.layout)) continue;
      hit = &p;
      break;
    }
    if (hit) out += hit->print(when, t);
    else out += layout[0];
    layout.remove_prefix(hit ? hit->layout.size() : 1);
  }
  return out;
}

struct Reading {
  std::string_view name;
  Value (*read)(int64_t v);
};
constexpr Reading kTimeReadings[] = {
    {"Year", [](int64_t v) { return of(civil(v).year); }},
    {"Month", [](int64_t v) { return of(int64_t{civil(v).month}); }},
    {"Day", [](int64_t v) { return of(int64_t{civil(v).day}); }},
    {"Hour", [](int64_t v) { return of(int64_t{civil(v).hour}); }},
    {"Minute", [](int64_t v) { return of(int64_t{civil(v).minute}); }},
    {"Second", [](int64_t v) { return of(int64_t{civil(v).second}); }},
    {"Nanosecond", [](int64_t v) { return of(int64_t{civil(v).nanos}); }},
    {"Weekday", [](int64_t v) { return of(int64_t{weekday(v)}); }},
    {"Unix", [](int64_t v) { return of(v / kSecond - (v % kSecond < 0)); }},
    {"UnixMilli", [](int64_t v) { return of(v / kMillisecond - (v % kMillisecond < 0)); }},
    {"UnixNano", [](int64_t v) { return of(v); }},
    {"UnixMicro", [](int64_t v) { return of(v / kMicrosecond - (v % kMicrosecond < 0)); }},
    {"YearDay", [](int64_t v) { return of(int64_t{1} + (v - from_civil({civil(v).year, 1, 1, 0, 0, 0, 0})) / kDay); }},
    {"UTC", [](int64_t v) { return of_time(v); }},
};
constexpr Reading kDurationReadings[] = {
    {"Hours", [](int64_t v) { return of(static_cast<double>(v) / 3600e9); }},
    {"Minutes", [](int64_t v) { return of(static_cast<double>(v) / 60e9); }},
    {"Seconds", [](int64_t v) { return of(static_cast<double>(v) / 1e9); }},
    {"Milliseconds", [](int64_t v) { return of(v / kMillisecond); }},
    {"Microseconds", [](int64_t v) { return of(v / kMicrosecond); }},
    {"Nanoseconds", [](int64_t v) { return of(v); }},
    {"Abs", [](int64_t v) { return of_duration(v < 0 && v != INT64_MIN ? -v : v); }},
};

}  // namespace

Result<Value> method(Evaluation& run, std::string_view name, const Value& self, std::span<const Value> args, size_t at) {
  std::span<const Reading> readings;
  if (self.kind == Kind::time) readings = kTimeReadings;
  if (self.kind == Kind::duration) readings = kDurationReadings;
  for (const Reading& r : readings)
    if (r.name == name && args.empty()) return r.read(self.whole);
  if (!readings.empty() && name == "String" && args.empty()) {
    std::string out;
    append_text(out, self);
    return of(run.arena.keep(std::move(out)));
  }
  if (self.kind == Kind::time && args.size() == 1) {
    const Value& other = args[0];
    if (name == "Format" && other.kind == Kind::string) return of(run.arena.keep(formatted(self.whole, other.text)));
    if (name == "Add" && other.kind == Kind::duration) return arithmetic(Op::add, self, other, run.arena, at);
    if (name == "Sub" && other.kind == Kind::time) return arithmetic(Op::subtract, self, other, run.arena, at);
    if (name == "Before" && other.kind == Kind::time) return of(self.whole < other.whole);
    if (name == "After" && other.kind == Kind::time) return of(self.whole > other.whole);
    if (name == "Equal" && other.kind == Kind::time) return of(self.whole == other.whole);
  }
  return wrong(at, "a " + std::string(kind_name(self.kind)) + " has no method " + std::string(name) + " that takes " + std::to_string(args.size()) + " arguments");
}

}  // namespace pawl::expr

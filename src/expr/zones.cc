#include "expr/zones.h"

#include <charconv>

#include "base/calendar.h"

namespace pawl::expr {

namespace {

// Removes the text up to and including `mark` and returns the part before `mark`.
std::string_view cut(std::string_view& text, char mark) {
  size_t at = std::min(text.find(mark), text.size());
  std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

int64_t number(std::string_view text, int base) {
  int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out, base);
  return out;
}

// Finds the line of a zone by binary search and returns it without the name; empty when there is
// none.
std::string_view line_of(std::string_view name) {
  std::string_view left = kZones;
  while (!left.empty()) {
    size_t begin = left.rfind('\n', left.size() / 2);
    begin = begin == std::string_view::npos ? 0 : begin + 1;
    size_t end = std::min(left.find('\n', begin), left.size());
    std::string_view line = left.substr(begin, end - begin);
    size_t size = std::min(line.find_first_of("|="), line.size());
    int order = name.compare(line.substr(0, size));
    if (order == 0) return line.substr(size);
    if (order < 0)
      left = left.substr(0, begin);
    else
      left.remove_prefix(std::min(end + 1, left.size()));
  }
  return {};
}

}  // namespace

// A line of zones.txt is NAME|TYPES|TRANSITIONS|RULE or NAME=OTHER_NAME. A type is
// ABBREVIATION,OFFSET with a `d` for daylight saving. A transition is SECONDS:TYPE in base 36,
// where SECONDS counts from the transition before.
std::optional<Zone> find_zone(std::string_view name) {
  if (name.empty() || name == "UTC" || name == "Local")
    return Zone{.name = std::string(name == "Local" ? "Local" : "UTC")};
  std::string_view line = line_of(name);
  if (line.starts_with('=')) line = line_of(line.substr(1));
  if (line.empty()) return std::nullopt;
  line.remove_prefix(1);
  Zone zone{.name = std::string(name)};
  std::string_view types = cut(line, '|');
  std::string_view transitions = cut(line, '|');
  zone.rule = line;
  while (!types.empty()) {
    std::string_view one = cut(types, ' ');
    std::string_view abbreviation = cut(one, ',');
    zone.types.push_back({std::string(abbreviation), number(one, 10), one.ends_with('d')});
  }
  int64_t when = 0;
  while (!transitions.empty()) {
    std::string_view one = cut(transitions, ' ');
    when += number(cut(one, ':'), 36);
    zone.transitions.push_back({when, static_cast<size_t>(number(one, 36))});
  }
  return zone;
}

Zone fixed_zone(std::string_view name, int64_t offset) {
  return {.name = std::string(name), .types = {{std::string(name), offset, false}}};
}

namespace {

// Reads the abbreviation at the front of a POSIX rule: "CET" or "<+03>".
std::string_view rule_name(std::string_view& rule) {
  if (rule.starts_with('<')) {
    rule.remove_prefix(1);
    return cut(rule, '>');
  }
  size_t n = 0;
  while (n < rule.size() && ((rule[n] | 0x20) >= 'a' && (rule[n] | 0x20) <= 'z'))
    ++n;
  std::string_view name = rule.substr(0, n);
  rule.remove_prefix(n);
  return name;
}

// "-3", "5:30", "+1:30:15" in seconds.
int64_t rule_seconds(std::string_view& rule) {
  int64_t sign = rule.starts_with('-') ? -1 : 1, out = 0;
  if (rule.starts_with('-') || rule.starts_with('+')) rule.remove_prefix(1);
  for (int64_t unit = 3600; unit; unit /= 60) {
    size_t n = 0;
    while (n < rule.size() && rule[n] >= '0' && rule[n] <= '9')
      ++n;
    out += unit * number(rule.substr(0, n), 10);
    rule.remove_prefix(n);
    if (!rule.starts_with(':')) break;
    rule.remove_prefix(1);
  }
  return sign * out;
}

// Seconds from the start of the year to the transition "M3.5.0/2", "J60" or "59", in local time
// before the transition.
int64_t rule_day(std::string_view text, int64_t year) {
  std::string_view day = cut(text, '/');
  int64_t time_of_day = text.empty() ? 7200 : rule_seconds(text);
  int64_t begin = seconds_of({.year = year, .month = 1, .day = 1});
  if (day.starts_with('J')) {
    int64_t n = number(day.substr(1), 10);
    return time_of_day + 86400 * (n - 1 + (n > 59 && days_in_month(year, 2) == 29));
  }
  if (!day.starts_with('M')) return time_of_day + 86400 * number(day, 10);
  day.remove_prefix(1);
  int month = static_cast<int>(number(cut(day, '.'), 10));
  int64_t week = number(cut(day, '.'), 10);
  int64_t weekday = number(day, 10);
  int64_t first = seconds_of({.year = year, .month = month, .day = 1});
  int64_t n = (weekday - weekday_of(first) + 7) % 7 + 7 * (week - 1);
  while (n >= days_in_month(year, month))
    n -= 7;
  return time_of_day + first - begin + 86400 * n;
}

// The period at a moment after the last transition, by the POSIX rule of the zone.
ZonePeriod period_by_rule(std::string_view rule, int64_t seconds, int64_t last_transition) {
  ZonePeriod standard{.begin = last_transition};
  standard.name = rule_name(rule);
  standard.offset = -rule_seconds(rule);
  if (rule.empty()) return standard;
  ZonePeriod daylight{.daylight_saving = true};
  daylight.name = rule_name(rule);
  bool default_offset = rule.empty() || rule.starts_with(',');
  daylight.offset = default_offset ? standard.offset + 3600 : -rule_seconds(rule);
  cut(rule, ',');
  std::string_view daylight_begins = cut(rule, ',');
  std::string_view daylight_ends = rule;
  // The transitions of three years; the moment lies between two of them.
  struct Transition {
    int64_t when;
    bool to_daylight;
  };
  std::vector<Transition> transitions;
  int64_t year = civil_of(seconds + standard.offset).year;
  for (int64_t y = year - 1; y <= year + 1; ++y) {
    int64_t start = seconds_of({.year = y, .month = 1, .day = 1});
    transitions.push_back({start + rule_day(daylight_begins, y) - standard.offset, true});
    transitions.push_back({start + rule_day(daylight_ends, y) - daylight.offset, false});
  }
  std::sort(transitions.begin(), transitions.end(),
            [](const Transition& a, const Transition& b) { return a.when < b.when; });
  size_t next = 0;
  while (next < transitions.size() && transitions[next].when <= seconds)
    ++next;
  ZonePeriod out = next && transitions[next - 1].to_daylight ? daylight : standard;
  out.begin = next ? std::max(last_transition, transitions[next - 1].when) : last_transition;
  out.end = next < transitions.size() ? transitions[next].when : INT64_MAX;
  return out;
}

// The type before the first transition: type 0 when no transition uses it, otherwise the first one
// without daylight saving time.
const Zone::LocalTimeType& first_type(const Zone& zone) {
  bool used = std::any_of(zone.transitions.begin(), zone.transitions.end(),
                          [](const Zone::Transition& c) { return c.type == 0; });
  for (const Zone::LocalTimeType& type : zone.types)
    if (used && !type.daylight_saving) return type;
  return zone.types[0];
}

}  // namespace

ZonePeriod period_at(const Zone* zone, int64_t seconds) {
  if (!zone || zone->types.empty()) return {};
  auto next = std::upper_bound(zone->transitions.begin(), zone->transitions.end(), seconds,
                               [](int64_t s, const Zone::Transition& c) { return s < c.when; });
  int64_t end = next == zone->transitions.end() ? INT64_MAX : next->when;
  if (next == zone->transitions.begin()) {
    const Zone::LocalTimeType& type = first_type(*zone);
    return {type.name, type.offset, type.daylight_saving, INT64_MIN, end};
  }
  const Zone::Transition& last = *std::prev(next);
  if (next == zone->transitions.end() && !zone->rule.empty())
    return period_by_rule(zone->rule, seconds, last.when);
  const Zone::LocalTimeType& type = zone->types[last.type];
  return {type.name, type.offset, type.daylight_saving, last.when, end};
}

int64_t utc_of(const Zone* zone, int64_t local) {
  ZonePeriod period = period_at(zone, local);
  int64_t utc = local - period.offset;
  if (utc >= period.begin && utc < period.end) return utc;
  return local - period_at(zone, utc).offset;
}

std::optional<int64_t> offset_of(const Zone* zone, std::string_view abbreviation, int64_t local) {
  if (!zone) return std::nullopt;
  const Zone::LocalTimeType* named = nullptr;
  for (const Zone::LocalTimeType& type : zone->types) {
    if (type.name != abbreviation) continue;
    ZonePeriod then = period_at(zone, local - type.offset);
    if (then.name == abbreviation) return then.offset;
    if (!named) named = &type;
  }
  if (!named) return std::nullopt;
  return named->offset;
}

}  // namespace pawl::expr

#include "expr/zones.h"

#include <charconv>

#include "base/calendar.h"

namespace pawl::expr {

namespace {

// What stands before `mark`; the text goes on after it.
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

// The line of a zone without its name, by halving; empty when there is none.
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

std::optional<Zone> find_zone(std::string_view name) {
  if (name.empty() || name == "UTC" || name == "Local")
    return Zone{.name = std::string(name == "Local" ? "Local" : "UTC")};
  std::string_view line = line_of(name);
  if (line.starts_with('=')) line = line_of(line.substr(1));
  if (line.empty()) return std::nullopt;
  line.remove_prefix(1);
  Zone zone{.name = std::string(name)};
  std::string_view clocks = cut(line, '|'), changes = cut(line, '|');
  zone.rule = line;
  while (!clocks.empty()) {
    std::string_view one = cut(clocks, ' '), abbreviation = cut(one, ',');
    zone.clocks.push_back({std::string(abbreviation), number(one, 10), one.ends_with('d')});
  }
  int64_t when = 0;
  while (!changes.empty()) {
    std::string_view one = cut(changes, ' ');
    when += number(cut(one, ':'), 36);
    zone.changes.push_back({when, static_cast<size_t>(number(one, 36))});
  }
  return zone;
}

Zone fixed_zone(std::string_view name, int64_t offset) {
  return {.name = std::string(name), .clocks = {{std::string(name), offset, false}}};
}

namespace {

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

// Seconds from the begin of the year to the change that "M3.5.0/2", "J60" or "59" names, on the
// clock that it ends.
int64_t rule_day(std::string_view text, int64_t year) {
  std::string_view day = cut(text, '/');
  int64_t clock = text.empty() ? 7200 : rule_seconds(text);
  int64_t begin = seconds_of({.year = year, .month = 1, .day = 1});
  if (day.starts_with('J')) {
    int64_t n = number(day.substr(1), 10);
    return clock + 86400 * (n - 1 + (n > 59 && days_in_month(year, 2) == 29));
  }
  if (!day.starts_with('M')) return clock + 86400 * number(day, 10);
  day.remove_prefix(1);
  int month = static_cast<int>(number(cut(day, '.'), 10));
  int64_t week = number(cut(day, '.'), 10), weekday = number(day, 10);
  int64_t first = seconds_of({.year = year, .month = month, .day = 1});
  int64_t n = (weekday - weekday_of(first) + 7) % 7 + 7 * (week - 1);
  while (n >= days_in_month(year, month))
    n -= 7;
  return clock + first - begin + 86400 * n;
}

InEffect by_rule(std::string_view rule, int64_t seconds, int64_t last_change) {
  InEffect standard{.begin = last_change}, summer{.summer = true};
  standard.name = rule_name(rule);
  standard.offset = -rule_seconds(rule);
  if (rule.empty()) return standard;
  summer.name = rule_name(rule);
  summer.offset =
      rule.empty() || rule.starts_with(',') ? standard.offset + 3600 : -rule_seconds(rule);
  cut(rule, ',');
  std::string_view begins = cut(rule, ','), ends = rule;
  int64_t year = civil_of(seconds + standard.offset).year;
  // The changes of three years in order: the moment lies between two of them.
  struct Edge {
    int64_t when;
    bool to_summer;
  };
  std::vector<Edge> edges;
  for (int64_t y = year - 1; y <= year + 1; ++y) {
    int64_t start = seconds_of({.year = y, .month = 1, .day = 1});
    edges.push_back({start + rule_day(begins, y) - standard.offset, true});
    edges.push_back({start + rule_day(ends, y) - summer.offset, false});
  }
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.when < b.when; });
  size_t next = 0;
  while (next < edges.size() && edges[next].when <= seconds)
    ++next;
  InEffect out = next && edges[next - 1].to_summer ? summer : standard;
  out.begin = next ? std::max(last_change, edges[next - 1].when) : last_change;
  out.end = next < edges.size() ? edges[next].when : INT64_MAX;
  return out;
}

// Before the first change: the clock that no change brings, or the first that is no summer time.
const Zone::Clock& first_clock(const Zone& zone) {
  bool used = std::any_of(zone.changes.begin(), zone.changes.end(),
                          [](const Zone::Change& c) { return c.clock == 0; });
  if (used)
    for (const Zone::Clock& clock : zone.clocks)
      if (!clock.summer) return clock;
  return zone.clocks[0];
}

}  // namespace

InEffect in_effect(const Zone* zone, int64_t seconds) {
  if (!zone || zone->clocks.empty()) return {};
  auto next = std::upper_bound(zone->changes.begin(), zone->changes.end(), seconds,
                               [](int64_t s, const Zone::Change& c) { return s < c.when; });
  int64_t end = next == zone->changes.end() ? INT64_MAX : next->when;
  if (next == zone->changes.begin()) {
    const Zone::Clock& clock = first_clock(*zone);
    return {clock.name, clock.offset, clock.summer, INT64_MIN, end};
  }
  const Zone::Change& last = *std::prev(next);
  if (next == zone->changes.end() && !zone->rule.empty())
    return by_rule(zone->rule, seconds, last.when);
  const Zone::Clock& clock = zone->clocks[last.clock];
  return {clock.name, clock.offset, clock.summer, last.when, end};
}

int64_t moment_of(const Zone* zone, int64_t wall) {
  InEffect clock = in_effect(zone, wall);
  int64_t moment = wall - clock.offset;
  if (moment >= clock.begin && moment < clock.end) return moment;
  return wall - in_effect(zone, moment).offset;
}

std::optional<int64_t> offset_of(const Zone* zone, std::string_view abbreviation, int64_t wall) {
  if (!zone) return std::nullopt;
  const Zone::Clock* named = nullptr;
  for (const Zone::Clock& clock : zone->clocks) {
    if (clock.name != abbreviation) continue;
    InEffect then = in_effect(zone, wall - clock.offset);
    if (then.name == abbreviation) return then.offset;
    if (!named) named = &clock;
  }
  if (!named) return std::nullopt;
  return named->offset;
}

}  // namespace pawl::expr

#include "faces/lifecycle/rule/cron.h"

#include <fmt/format.h>

#include <charconv>

#include "faces/lifecycle/run/refuse.h"

namespace pawl::lifecycle {

namespace {

struct CronField {
  std::string_view name;
  int min, max;
  std::string_view words;  // names of the values, three letters each, beginning with `min`
};
constexpr CronField kFields[] = {
    {"second", 0, 59, ""},
    {"minute", 0, 59, ""},
    {"hour", 0, 23, ""},
    {"day", 1, 31, ""},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {"weekday", 0, 7, "sunmontuewedthufrisat"},
};

std::unexpected<Error> bad(const CronField& f, std::string_view text) {
  return refuse(errc::invalid_rule,
                fmt::format("cron: '{}' is not a {} from {} to {}", text, f.name, f.min, f.max));
}

// A number in the field's range, or a name such as "mon" in any case.
Result<int> number(const CronField& f, std::string_view text) {
  int n = 0;
  auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (wrong == std::errc() && end == text.data() + text.size() && !text.empty()) {
    if (n < f.min || n > f.max) return bad(f, text);
    return n;
  }
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  size_t at = lower.size() == 3 ? f.words.find(lower) : std::string_view::npos;
  // at % 3: "unm" is inside "sunmon", but no name begins there.
  if (at == std::string_view::npos || at % 3) return bad(f, text);
  return f.min + static_cast<int>(at / 3);
}

// One element of a list: VALUE, FROM-TO, * or ?, each with an optional /STEP.
Result<uint64_t> parse_part(const CronField& f, std::string_view part) {
  int step = 1;
  if (size_t slash = part.find('/'); slash != std::string_view::npos) {
    std::string_view text = part.substr(slash + 1);
    auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), step);
    if (wrong != std::errc() || end != text.data() + text.size() || step < 1 || step > f.max ||
        text.empty())
      return bad(f, text);
    part = part.substr(0, slash);
  }
  int from = f.min, to = f.max;
  if (part != "*" && part != "?") {
    size_t dash = part.find('-');
    TRY(from, number(f, part.substr(0, dash)));
    // "10/5" means from 10 on, every 5.
    to = dash == std::string_view::npos && step == 1 ? from : f.max;
    if (dash != std::string_view::npos) {
      TRY(to, number(f, part.substr(dash + 1)));
    }
    if (to < from) return bad(f, part);
  }
  uint64_t bits = 0;
  for (int i = from; i <= to; i += step)
    bits |= uint64_t{1} << i;
  return bits;
}

Result<uint64_t> parse_field(const CronField& f, std::string_view text) {
  uint64_t bits = 0;
  while (true) {
    size_t comma = text.find(',');
    TRY(uint64_t one, parse_part(f, text.substr(0, comma)));
    bits |= one;
    if (comma == std::string_view::npos) return bits;
    text.remove_prefix(comma + 1);
  }
}

// "*/2" is a restriction, "*" is not: see next_after().
bool is_any(std::string_view text) { return text == "*" || text == "?"; }

int weekday_of(Time t) {
  Time day = t / (86400 * kSecond) - (t % (86400 * kSecond) < 0);
  return static_cast<int>(((day + 4) % 7 + 7) % 7);  // 1970-01-01 was a Thursday
}

}  // namespace

Result<Cron> parse_cron(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t'))
      line.remove_prefix(1);
    if (line.empty()) break;
    size_t end = std::min(line.find(' '), line.find('\t'));
    fields.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end, line.size()));
  }
  if (fields.size() == 5) fields.insert(fields.begin(), "0");
  if (fields.size() != 6)
    return refuse(
        errc::invalid_rule,
        "cron: five fields (minute hour day month weekday) or six (seconds first) are needed");
  uint64_t bits[6];
  for (size_t i = 0; i < 6; ++i) {
    TRY(bits[i], parse_field(kFields[i], fields[i]));
  }
  Cron out;
  out.seconds = bits[0];
  out.minutes = bits[1];
  out.hours = static_cast<uint32_t>(bits[2]);
  out.days = static_cast<uint32_t>(bits[3]);
  out.months = static_cast<uint32_t>(bits[4]);
  out.weekdays = static_cast<uint32_t>(bits[5] | (bits[5] >> 7 & 1));  // 7 is Sunday too
  out.any_day = is_any(fields[3]);
  out.any_weekday = is_any(fields[5]);
  return out;
}

std::optional<Time> next_after(const Cron& cron, Time t) {
  // Strictly after `t`, to the second.
  Civil c = civil(t + kSecond);
  c.nanos = 0;
  int64_t last_year = c.year + 8;  // the longest wait for 29 February
  // Each round either finds the time or moves to the next value of the largest field that does not
  // fit, with all smaller fields at their start. from_civil() and civil() carry over: month 13 is
  // January.
  while (c.year <= last_year) {
    Time at = from_civil(c);
    c = civil(at);
    bool day = cron.days >> c.day & 1, week = cron.weekdays >> weekday_of(at) & 1;
    // When day and weekday are both restricted, either may match, as in every cron.
    bool day_fits = cron.any_day       ? (cron.any_weekday || week)
                    : cron.any_weekday ? day
                                       : day || week;
    if (!(cron.months >> c.month & 1))
      c = {c.year, c.month + 1, 1, 0, 0, 0, 0};
    else if (!day_fits)
      c = {c.year, c.month, c.day + 1, 0, 0, 0, 0};
    else if (!(cron.hours >> c.hour & 1))
      c = {c.year, c.month, c.day, c.hour + 1, 0, 0, 0};
    else if (!(cron.minutes >> c.minute & 1))
      c = {c.year, c.month, c.day, c.hour, c.minute + 1, 0, 0};
    else if (!(cron.seconds >> c.second & 1))
      c = {c.year, c.month, c.day, c.hour, c.minute, c.second + 1, 0};
    else
      return at;
  }
  return std::nullopt;
}

}  // namespace pawl::lifecycle

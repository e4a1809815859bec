#include "faces/processes/schedule/recurrence.h"

#include <algorithm>
#include <charconv>

#include "faces/processes/limits.h"
#include "faces/processes/schedule/shape.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

constexpr int64_t kDaySeconds = 86'400;

std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "BAD_SCHEDULE", std::move(why));
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Day day_of(int64_t year, int month, int day) {
  return floor_div(from_civil({year, month, day, 0, 0, 0, 0}) / kSecond, kDaySeconds);
}

int days_in_month(int64_t year, int month) {
  return static_cast<int>(day_of(year, month + 1, 1) - day_of(year, month, 1));
}

// One field of a cron expression.
struct Field {
  std::string_view name;
  int low, high;
  std::vector<std::string_view> names;  // of the values from `low` on
};

Result<int> value_of(const Field& field, std::string_view text) {
  for (size_t i = 0; i < field.names.size(); ++i)
    if (text.size() == 3 && std::equal(text.begin(), text.end(), field.names[i].begin(),
                                       [](char a, char b) { return (a & ~0x20) == b; }))
      return field.low + static_cast<int>(i);
  int value = -1;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < field.low ||
      value > field.high)
    return bad("cron: \"" + std::string(text) + "\" is no " + std::string(field.name) + " from " +
               std::to_string(field.low) + " to " + std::to_string(field.high));
  return value;
}

struct Bits {
  uint64_t bits = 0;
  bool any = false;  // the field is `*` alone
};

// "*", "5", "1-5", "*/15", "10-40/5", and lists of these.
Result<Bits> parse_field(const Field& field, std::string_view text) {
  Bits out;
  out.any = text == "*";
  while (true) {
    const size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    int step = 1;
    const size_t slash = part.find('/');
    if (slash != std::string_view::npos) {
      TRY(step, value_of({"step", 1, field.high, {}}, part.substr(slash + 1)));
      part = part.substr(0, slash);
    }
    int from = field.low, to = field.high;
    if (part != "*") {
      const size_t dash = part.find('-');
      TRY(from, value_of(field, part.substr(0, dash)));
      to = slash == std::string_view::npos ? from : field.high;
      if (dash != std::string_view::npos) {
        TRY(to, value_of(field, part.substr(dash + 1)));
      }
      if (to < from)
        return bad("cron: the range \"" + std::string(part) + "\" ends before it begins");
    }
    for (int v = from; v <= to; v += step)
      out.bits |= uint64_t{1} << v;
    if (comma == std::string_view::npos) return out;
    text = text.substr(comma + 1);
  }
}

constexpr std::pair<std::string_view, std::string_view> kNicknames[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

Result<std::vector<std::string_view>> cron_fields(std::string_view text) {
  for (const auto& [name, meaning] : kNicknames)
    if (text == name) text = meaning;
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    if (space != 0) out.push_back(text.substr(0, space));
    if (space == std::string_view::npos) break;
    text = text.substr(space + 1);
  }
  if (out.size() != 5)
    return bad(
        "cron has five fields (minute, hour, day of month, month, day of week) or is one of "
        "@hourly, @daily, @weekly, @monthly, @yearly; got " +
        std::to_string(out.size()) + " fields");
  return out;
}

struct WallTimes {
  DayRule days;
  std::vector<int32_t> times;
  bool every_hour = false;
};

Result<WallTimes> parse_cron(std::string_view text) {
  TRY(std::vector<std::string_view> fields, cron_fields(text));
  WallTimes out;
  TRY(Bits minutes, parse_field({"minute", 0, 59, {}}, fields[0]));
  TRY(Bits hours, parse_field({"hour", 0, 23, {}}, fields[1]));
  for (int h = 0; h < 24; ++h)
    for (int m = 0; m < 60; ++m)
      if (hours.bits >> h & 1 && minutes.bits >> m & 1) out.times.push_back(h * 3600 + m * 60);
  out.every_hour = hours.any;
  if (fields[2] == "L") {
    out.days.days_before_end = 2;
  } else {
    TRY(Bits days, parse_field({"day of month", 1, 31, {}}, fields[2]));
    if (!days.any) out.days.month_days = days.bits;
  }
  TRY(Bits months, parse_field({"month",
                                1,
                                12,
                                {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP",
                                 "OCT", "NOV", "DEC"}},
                               fields[3]));
  out.days.months = static_cast<uint32_t>(months.bits);
  TRY(Bits weekdays,
      parse_field({"day of week", 0, 7, {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
                  fields[4]));
  // 7 is Sunday too.
  if (!weekdays.any)
    out.days.weekdays = static_cast<uint32_t>((weekdays.bits | weekdays.bits >> 7) & 0x7f);
  out.days.either = true;
  return out;
}

Result<int32_t> parse_time_of_day(std::string_view text) {
  int part[3] = {0, 0, 0};
  size_t count = 0;
  std::string_view rest = text;
  bool good = text.size() == 5 || text.size() == 8;
  for (; good && count < 3 && !rest.empty(); ++count) {
    auto [end, failed] = std::from_chars(rest.data(), rest.data() + 2, part[count]);
    good = failed == std::errc() && end == rest.data() + 2 && (rest.size() == 2 || rest[2] == ':');
    rest = rest.size() > 3 ? rest.substr(3) : std::string_view();
  }
  if (!good || part[0] > 23 || part[1] > 59 || part[2] > 59)
    return bad("calendar.at: \"" + std::string(text) +
               "\" is no time of day; write 09:30 or "
               "09:30:15");
  return part[0] * 3600 + part[1] * 60 + part[2];
}

Result<Day> parse_date(std::string_view name, std::string_view text) {
  auto time = text.size() == 10 ? parse_rfc3339(std::string(text) + "T00:00:00Z")
                                : Result<Time>(std::unexpected(Error{}));
  if (!time)
    return bad("calendar." + std::string(name) + ": \"" + std::string(text) +
               "\" is no date; write 2026-12-24");
  return floor_div(*time / kSecond, kDaySeconds);
}

// The texts of a list in the calendar; empty when it is absent.
Result<std::vector<std::string>> texts_of(const json::Value& calendar, std::string_view name) {
  std::vector<std::string> out;
  const json::Value* list = calendar.find(name);
  if (!list) return out;
  if (!list->is_array() || list->array().empty() || list->array().size() > kCalendarItems)
    return bad("calendar." + std::string(name) + " must be a list of 1 to " +
               std::to_string(kCalendarItems) + " texts");
  for (const json::Value& item : list->array()) {
    if (!item.is_string()) return bad("calendar." + std::string(name) + " must hold texts");
    out.push_back(item.string());
  }
  return out;
}

Result<std::vector<int64_t>> numbers_of(const json::Value& calendar, std::string_view name,
                                        int64_t low, int64_t high) {
  std::vector<int64_t> out;
  const json::Value* list = calendar.find(name);
  if (!list) return out;
  if (!list->is_array() || list->array().empty() || list->array().size() > kCalendarItems)
    return bad("calendar." + std::string(name) + " must be a list of numbers");
  for (const json::Value& item : list->array()) {
    auto n = item.is_number() ? item.as_int64() : std::nullopt;
    if (!n || *n < low || *n > high || *n == 0)
      return bad("calendar." + std::string(name) + " holds " + json::print(item) +
                 "; allowed are numbers from " + std::to_string(low) + " to " +
                 std::to_string(high) + " except 0");
    out.push_back(*n);
  }
  return out;
}

Result<void> parse_calendar_days(const json::Value& calendar, DayRule& days) {
  constexpr std::string_view kWeekdays[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
  TRY(std::vector<std::string> weekdays, texts_of(calendar, kCalendar["daysOfWeek"]));
  for (const std::string& name : weekdays) {
    auto found = std::find(std::begin(kWeekdays), std::end(kWeekdays), name);
    if (found == std::end(kWeekdays))
      return bad("calendar.daysOfWeek: \"" + name +
                 "\" is none of MON, TUE, WED, THU, FRI, SAT, SUN");
    days.weekdays |= 1u << (found - std::begin(kWeekdays));
  }
  TRY(std::vector<int64_t> month_days, numbers_of(calendar, kCalendar["daysOfMonth"], -31, 31));
  for (int64_t n : month_days)
    (n > 0 ? days.month_days : days.days_before_end) |= uint64_t{1} << (n > 0 ? n : -n);
  TRY(std::vector<int64_t> months, numbers_of(calendar, kCalendar["months"], 1, 12));
  if (!months.empty()) days.months = 0;
  for (int64_t n : months)
    days.months |= 1u << n;
  TRY(std::vector<std::string> dates, texts_of(calendar, kCalendar["dates"]));
  for (const std::string& text : dates) {
    TRY(Day day, parse_date("dates", text));
    days.dates.insert(day);
  }
  days.only_dates = !dates.empty() && weekdays.empty() && month_days.empty() &&
                    !calendar.find(kCalendar["months"]);
  TRY(std::vector<std::string> except, texts_of(calendar, kCalendar["except"]));
  for (const std::string& text : except) {
    TRY(Day day, parse_date("except", text));
    days.except.insert(day);
  }
  return {};
}

Result<WallTimes> parse_calendar(const json::Value& calendar) {
  if (!calendar.is_object()) return bad("calendar must be an object: {\"at\": [\"09:00\"], ...}");
  for (const json::Member& m : calendar.object())
    if (!kCalendar.has(m.name))
      return bad("calendar has no member \"" + m.name +
                 "\"; known: at, daysOfWeek, daysOfMonth, months, dates, except");
  WallTimes out;
  TRY(std::vector<std::string> at, texts_of(calendar, kCalendar["at"]));
  if (at.empty()) return bad("calendar.at is missing: a list of times of the day, [\"09:00\"]");
  for (const std::string& text : at) {
    TRY(int32_t time, parse_time_of_day(text));
    out.times.push_back(time);
  }
  std::sort(out.times.begin(), out.times.end());
  TRY_OK(parse_calendar_days(calendar, out.days));
  return out;
}

Result<Time> parse_interval(const json::Value& given) {
  if (!given.is_string()) return bad("interval must be a duration, such as \"PT15M\"");
  auto duration = parse_duration(given.string());
  if (!duration) return bad("interval: " + duration.error().message);
  if (duration->months)
    return bad("interval: months and years have no fixed length; use cron or calendar");
  if (duration->nanos < kMinIntervalSeconds * kSecond)
    return bad("interval must be at least PT" + std::to_string(kMinIntervalSeconds) + "S");
  return duration->nanos;
}

}  // namespace

bool DayRule::includes(Day day) const {
  if (except.contains(day)) return false;
  if (dates.contains(day)) return true;
  if (only_dates) return false;
  const Civil date = civil(day * kDaySeconds * kSecond);
  if (!(months >> date.month & 1)) return false;
  const bool has_month_days = month_days || days_before_end;
  const int from_end = days_in_month(date.year, date.month) - date.day + 1;
  const bool month_day = (month_days >> date.day & 1) || (days_before_end >> from_end & 1);
  // 1970-01-01 was a Thursday.
  const int weekday = static_cast<int>(((day + 4) % 7 + 7) % 7);
  const bool week_day = weekdays >> weekday & 1;
  if (has_month_days && weekdays && either) return month_day || week_day;
  return (!has_month_days || month_day) && (!weekdays || week_day);
}

Result<Recurrence> Recurrence::parse(const json::Value& schedule, Time anchor) {
  const json::Value* cron = schedule.find(kSchedule["cron"]);
  const json::Value* interval = schedule.find(kSchedule["interval"]);
  const json::Value* calendar = schedule.find(kSchedule["calendar"]);
  if ((cron ? 1 : 0) + (interval ? 1 : 0) + (calendar ? 1 : 0) != 1)
    return bad("a schedule has exactly one of \"cron\", \"interval\" and \"calendar\"");
  Recurrence out;
  if (const json::Value* name = schedule.find(kSchedule["timeZone"])) {
    auto zone = name->is_string() ? expr::find_zone(name->string()) : std::nullopt;
    if (!zone || name->string() == "Local")
      return bad("timeZone: " + json::print(*name).substr(0, 100) +
                 " is no time zone; write one of the IANA names, such as \"Europe/Berlin\"");
    if (interval) return bad("timeZone: an interval has none");
    out.zone_ = std::make_shared<const expr::Zone>(std::move(*zone));
  }
  if (interval) {
    TRY(out.every_, parse_interval(*interval));
    out.anchor_ = anchor;
    return out;
  }
  if (cron && !cron->is_string()) return bad("cron must be a text, such as \"0 9 * * MON-FRI\"");
  TRY(WallTimes wall, cron ? parse_cron(cron->string()) : parse_calendar(*calendar));
  out.days_ = std::move(wall.days);
  out.times_ = std::move(wall.times);
  out.every_hour_ = wall.every_hour;
  return out;
}

// The moments at which the clocks show `local`, in order: none or two around a transition. Around
// one transition at most two offsets apply: that of the day before and that of the day after.
void Recurrence::moments_of(int64_t local, std::vector<int64_t>& out) const {
  const int64_t before = expr::period_at(zone_.get(), local - kDaySeconds).offset;
  const int64_t after = expr::period_at(zone_.get(), local + kDaySeconds).offset;
  for (int64_t offset : {before, after}) {
    const int64_t moment = local - offset;
    if (expr::period_at(zone_.get(), moment).offset == offset &&
        (out.empty() || out.back() != moment))
      out.push_back(moment);
  }
  // Offsets that are larger give earlier moments.
  std::sort(out.begin(), out.end());
  if (out.empty()) {
    // The clocks skip `local`: they go forward where the period of this moment begins.
    if (!every_hour_) out.push_back(expr::period_at(zone_.get(), local - before).begin);
  } else if (!every_hour_) {
    out.resize(1);
  }
}

std::optional<int64_t> Recurrence::first_of_day(Day day, int64_t after) const {
  const int64_t midnight = day * kDaySeconds;
  const expr::ZonePeriod period = expr::period_at(zone_.get(), midnight - kDaySeconds);
  if (period.end > midnight + 2 * kDaySeconds) {  // no transition near this day
    const int64_t wanted = after + period.offset - midnight;
    auto found = std::upper_bound(times_.begin(), times_.end(), wanted);
    if (found == times_.end()) return std::nullopt;
    return midnight + *found - period.offset;
  }
  std::optional<int64_t> best;
  std::vector<int64_t> moments;
  for (int32_t time : times_) {
    moments.clear();
    moments_of(midnight + time, moments);
    for (int64_t moment : moments)
      if (moment > after && (!best || moment < *best)) best = moment;
  }
  return best;
}

std::optional<int64_t> Recurrence::next_wall(int64_t after) const {
  const int64_t local = after + expr::period_at(zone_.get(), after).offset;
  // From the day before: around a transition the local day may be one too many.
  const Day first = floor_div(local, kDaySeconds) - 1;
  for (Day day = first; day < first + kSearchDays; ++day) {
    if (!days_.includes(day)) continue;
    if (auto found = first_of_day(day, after)) return found;
  }
  return std::nullopt;
}

std::optional<Time> Recurrence::next(Time after) const {
  if (every_) {
    if (after < anchor_) return anchor_;
    const Time passed = (after - anchor_) / every_;
    Time at = 0;
    if (__builtin_mul_overflow(passed + 1, every_, &at) || __builtin_add_overflow(anchor_, at, &at))
      return std::nullopt;
    return at;
  }
  // Whole seconds: a run at `after` itself was due already.
  auto found = next_wall(floor_div(after, kSecond));
  Time at = 0;
  if (!found || __builtin_mul_overflow(*found, kSecond, &at)) return std::nullopt;
  return at;
}

Time Recurrence::skip_ahead(Time from, Time until, size_t count) const {
  if (!every_) return from;
  const Time span = static_cast<Time>(count) * every_;
  if (until - from <= span) return from;
  // The first run after this moment is one of the last `count`.
  return next(until - span).value_or(from);
}

}  // namespace pawl::processes

#pragma once
// When a schedule is due: a cron expression or a calendar on the clocks of a time zone, or an
// interval. The result depends on the arguments alone: zones are compiled in (expr/zones.h), and no
// clock is read.
//
// Daylight saving. A time of day that the clocks skip is due once, at the moment when they go
// forward. A time of day that they show twice is due the first time. A cron expression whose hour
// field is `*` counts hours that pass and not hours of the day: it is due in both hours that are
// shown twice, and not for the hour that is skipped.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "expr/zones.h"
#include "json/value.h"

namespace pawl::processes {

// A day, counted from 1970-01-01.
using Day = int64_t;

// The days of a cron expression or a calendar. Bits are counted as people count: bit 1 is January
// or the first day of a month; bit 0 of the weekdays is Sunday.
struct DayRule {
  uint32_t months = 0x1ffe;
  uint64_t month_days = 0;       // 0: every day
  uint64_t days_before_end = 0;  // bit 1: the last day of the month, bit 2: the one before
  uint32_t weekdays = 0;         // 0: every day
  // True: a day of the month or a weekday is enough when both are given, as in cron. False: both.
  bool either = false;
  bool only_dates = false;  // no day but `dates`
  std::set<Day> dates{}, except{};

  bool includes(Day day) const;
};

class Recurrence {
 public:
  // Reads "cron", "interval" or "calendar", and "timeZone", of a schedule. `anchor` is where an
  // interval begins to count. Error: invalid BAD_SCHEDULE, which names the member.
  static Result<Recurrence> parse(const json::Value& schedule, Time anchor);
  // The first moment after `after`; nothing when there is none in the next kSearchDays.
  std::optional<Time> next(Time after) const;
  // The earliest moment from which at most `count` runs lie before `until`, when that is known
  // without counting them; else `from`.
  Time skip_ahead(Time from, Time until, size_t count) const;

 private:
  std::optional<int64_t> next_wall(int64_t after) const;
  std::optional<int64_t> first_of_day(Day day, int64_t after) const;
  void moments_of(int64_t local, std::vector<int64_t>& out) const;

  Time every_ = 0, anchor_ = 0;             // of an interval; 0: the days and times below
  std::shared_ptr<const expr::Zone> zone_;  // null: UTC. Shared by copies of a schedule
  DayRule days_;
  std::vector<int32_t> times_;  // seconds of the day, ascending
  bool every_hour_ = false;
};

}  // namespace pawl::processes

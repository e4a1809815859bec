#pragma once
// A cron line: minute, hour, day, month and weekday in UTC. A line of six fields begins with
// seconds.

#include "base/time.h"

namespace pawl::lifecycle {

struct Cron {
  uint64_t seconds = 0, minutes = 0;  // one bit for each value that matches
  uint32_t hours = 0, days = 0, months = 0, weekdays = 0;
  bool any_day = true, any_weekday = true;
};

// Each field is *, ?, a value, a range, a step (*/5, 10/5, 1-30/2), or a list of these. Months and
// weekdays may be names of three letters. Weekday 0 and 7 are Sunday. Error: invalid_rule.
Result<Cron> parse_cron(std::string_view line);
// The first time after `t` that matches; nothing when none does within eight years.
std::optional<Time> next_after(const Cron& cron, Time t);

}  // namespace pawl::lifecycle

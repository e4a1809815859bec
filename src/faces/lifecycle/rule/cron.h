#pragma once
// When a schedule fires next: a cron line (minute hour day month weekday, UTC; six fields begin
// with seconds) or an ISO 8601 interval.

#include "base/time.h"

namespace pawl::lifecycle {

struct Cron {
  uint64_t seconds = 0, minutes = 0;  // a bit for each value that fires
  uint32_t hours = 0, days = 0, months = 0, weekdays = 0;
  bool any_day = true, any_weekday = true;
};

Result<Cron> parse_cron(std::string_view line);
// The first moment after `t` that fits; nothing when none does within five years.
std::optional<Time> next_after(const Cron& cron, Time t);

}  // namespace pawl::lifecycle

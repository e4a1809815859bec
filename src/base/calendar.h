#pragma once
// The calendar in whole seconds since 1970, which reaches past the years that nanoseconds hold
// (base/time.h).

#include "base/time.h"

namespace pawl {

Civil civil_of(int64_t seconds);
int64_t seconds_of(const Civil& c);  // days over the month's carry on
int days_in_month(int64_t year, int month);
int weekday_of(int64_t seconds);  // 0 is Sunday

}  // namespace pawl

#pragma once
// Calendar arithmetic in whole seconds since 1970, UTC. It covers years that nanoseconds in 64 bits
// cannot hold; base/time.h covers 1678 to 2261 in nanoseconds.

#include "base/time.h"

namespace pawl {

Civil civil_of(int64_t seconds);
int64_t seconds_of(const Civil& c);  // a day past the end of its month counts into the next month
int days_in_month(int64_t year, int month);
int weekday_of(int64_t seconds);  // 0 is Sunday

}  // namespace pawl

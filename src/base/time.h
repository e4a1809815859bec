#pragma once
// Time is nanoseconds since 1970, UTC. Nothing here reads a clock; runtime/clock.h does.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pawl {

using Time = int64_t;
inline constexpr Time kMicrosecond = 1'000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;

// A date and time of day of the proleptic Gregorian calendar.
struct Civil {
  int64_t year;
  int month, day;  // counted from 1
  int hour, minute, second;
  int nanos;
};
Civil civil(Time t);
// A month over 12 or a day past the end of its month counts into the next year or month.
Time from_civil(const Civil& c);

// Prints "2026-11-15T13:32:00.123456Z". The fraction has at most `digits` digits; trailing zeros
// are dropped unless `fixed`.
std::string rfc3339(Time t, int digits = 9, bool fixed = false);
// Accepts `Z` or an offset, a fraction of any length (cut to nanoseconds), and `T`, `t` or a space
// between date and time. Times outside the years 1678 to 2261 are refused.
Result<Time> parse_rfc3339(std::string_view text);
// As parse_rfc3339, but a time outside those years gives the smallest or the largest Time. For
// bounds of queries.
Result<Time> parse_rfc3339_clamped(std::string_view text);

// An ISO 8601 duration such as "P1Y2M3W4DT5H6M7.5S". Years and months follow the calendar.
struct Duration {
  int64_t months = 0;
  int64_t nanos = 0;
};
Result<Duration> parse_duration(std::string_view text);
// A result after the largest Time is the largest Time.
Time add(Time t, const Duration& d);

}  // namespace pawl

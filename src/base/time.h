#pragma once
// Time is nanoseconds since 1970, UTC. Nothing here reads a clock: see runtime/clock.h for that.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pawl {

using Time = int64_t;
inline constexpr Time kMicrosecond = 1'000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;

struct Civil {
  int64_t year;
  int month, day;  // from 1
  int hour, minute, second;
  int nanos;
};
Civil civil(Time t);
Time from_civil(const Civil& c);  // months over 12 or days over the month's carry on

// "2026-11-15T13:32:00.123456Z"; `digits` of the fraction, trailing zeros cut unless `fixed`.
std::string rfc3339(Time t, int digits = 9, bool fixed = false);
// Accepts `Z` or an offset, a fraction of any length (kept to nanoseconds), `T`, `t` or a space.
Result<Time> parse_rfc3339(std::string_view text);
// The same for comparing with: a time before or after all that Time can hold is its first or last.
Result<Time> parse_rfc3339_clamped(std::string_view text);

// An ISO 8601 duration in full: "P1Y2M3W4DT5H6M7.5S". Years and months follow the calendar.
struct Duration {
  int64_t months = 0;
  int64_t nanos = 0;
};
Result<Duration> parse_duration(std::string_view text);
Time add(Time t, const Duration& d);

}  // namespace pawl

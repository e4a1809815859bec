#pragma once
// Prints and parses times by a layout of Go's time package. A layout shows how the reference time,
// Mon Jan 2 15:04:05 MST 2006, would be written.

#include <functional>

#include "base/result.h"
#include "expr/zones.h"

namespace pawl::expr {

// A moment and the time zone in which it is shown.
struct ZonedTime {
  int64_t seconds = 0;  // since 1970
  int32_t nanos = 0;    // 0 to 999,999,999
  const Zone* zone = nullptr;
};

std::string print_time(const ZonedTime& m, std::string_view layout);

// Fields that the text does not have get their first value: the year 0, January, day 1, midnight. A
// text without an offset is in `zone`. A text with an offset that the zone does not have gets a
// fixed zone, which `keep` stores.
Result<ZonedTime> read_time(std::string_view text, std::string_view layout, const Zone* zone,
                            const std::function<const Zone*(Zone)>& keep);

inline constexpr std::string_view kRfc3339 = "2006-01-02T15:04:05.999999999Z07:00";
inline constexpr std::string_view kPlainTime = "2006-01-02 15:04:05.999999999 -0700 MST";

}  // namespace pawl::expr

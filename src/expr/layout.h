#pragma once
// Times as text, by Go's layouts: the text is written as the reference time would be, Mon Jan 2
// 15:04:05 MST 2006.

#include <functional>

#include "base/result.h"
#include "expr/zones.h"

namespace pawl::expr {

// A point in time and the clock it is read by.
struct Moment {
  int64_t seconds = 0;  // since 1970
  int32_t nanos = 0;    // 0 to 999,999,999
  const Zone* zone = nullptr;
};

std::string print_time(const Moment& m, std::string_view layout);

// What the text does not say is the first of its kind: the year 0, January, the 1st, midnight. A
// text without an offset is read by `zone`; one with an offset that is not the zone's gets a zone
// of its own, which `keep` stores.
Result<Moment> read_time(std::string_view text, std::string_view layout, const Zone* zone,
                         const std::function<const Zone*(Zone)>& keep);

inline constexpr std::string_view kRfc3339 = "2006-01-02T15:04:05.999999999Z07:00";
inline constexpr std::string_view kPlainTime = "2006-01-02 15:04:05.999999999 -0700 MST";

}  // namespace pawl::expr

#pragma once
// Time zones: which clock was on the wall when. The rules are compiled in (zones.txt, made by
// scripts/zones), never read from the machine: an expression must give the same everywhere and on
// every replay. Null stands for UTC.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::expr {

struct Zone {
  struct Clock {
    std::string name;    // "CET"; empty for an offset that nobody named
    int64_t offset = 0;  // seconds east of UTC
    bool summer = false;
  };
  struct Change {
    int64_t when;
    size_t clock;
  };
  std::string name;
  std::vector<Clock> clocks;
  std::vector<Change> changes;
  std::string_view rule;  // POSIX TZ: what follows the last change
};

// "Europe/Berlin"; "" and "UTC" are UTC, and so is "Local". Nothing for a name that nobody knows.
std::optional<Zone> find_zone(std::string_view name);
Zone fixed_zone(std::string_view name, int64_t offset);

// The clock at a moment, and the moments between which it shows that offset.
struct InEffect {
  std::string_view name = "UTC";
  int64_t offset = 0;
  bool summer = false;
  int64_t begin = INT64_MIN, end = INT64_MAX;
};
InEffect in_effect(const Zone* zone, int64_t seconds);
// The moment at which the zone's clock shows `wall`. An hour that summer skips is read by the clock
// before it, one that comes twice by the first.
int64_t moment_of(const Zone* zone, int64_t wall);
// The offset of the clock with this abbreviation, preferably one in effect around `wall`.
std::optional<int64_t> offset_of(const Zone* zone, std::string_view abbreviation, int64_t wall);

// The lines of zones.txt.
extern const std::string_view kZones;

}  // namespace pawl::expr

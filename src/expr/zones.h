#pragma once
// Time zones. Their rules are compiled in (zones.txt, made by scripts/zones) and never read from
// the machine: an expression must give the same result on every machine and on every replay. A null
// zone is UTC. The terms are those of tzfile(5).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::expr {

struct Zone {
  struct LocalTimeType {
    std::string name;    // abbreviation: "CET"; may be empty
    int64_t offset = 0;  // seconds east of UTC
    bool daylight_saving = false;
  };
  struct Transition {
    int64_t when;
    size_t type;
  };
  std::string name;
  std::vector<LocalTimeType> types;
  std::vector<Transition> transitions;
  std::string_view rule;  // POSIX TZ string, which applies after the last transition
};

// Finds "Europe/Berlin". The names "", "UTC" and "Local" give UTC. Nothing for an unknown name.
std::optional<Zone> find_zone(std::string_view name);
// A zone with one offset, in seconds east of UTC.
Zone fixed_zone(std::string_view name, int64_t offset);

// The local time type at a moment, and the period [begin, end) in which it applies.
struct ZonePeriod {
  std::string_view name = "UTC";
  int64_t offset = 0;
  bool daylight_saving = false;
  int64_t begin = INT64_MIN, end = INT64_MAX;
};
ZonePeriod period_at(const Zone* zone, int64_t seconds);
// The moment at which local clocks show `local` (seconds). An hour that is skipped is read with the
// offset before the transition; an hour that occurs twice gives the first moment.
int64_t utc_of(const Zone* zone, int64_t local);
// The offset of the type with this abbreviation, if possible of one that applies around `local`.
std::optional<int64_t> offset_of(const Zone* zone, std::string_view abbreviation, int64_t local);

// The text of zones.txt: one line for each zone, sorted by name.
extern const std::string_view kZones;

}  // namespace pawl::expr

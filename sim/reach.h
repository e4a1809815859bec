#pragma once
// What clients of a simulated world brought about, beside plain requests. A row that stays at zero
// shows that the simulator is quieter than it seems.

#include <array>
#include <cstdint>
#include <string_view>

namespace pawl::sim {

enum class Reach : uint8_t {
  moved,
  migrated,
  bulk,
  named_signal,
  kept_signal,
  limited,
  chained,
  scheduled,
  repeated_call,
  joined,
  refused_conflict,
  search_job,
  foreign,
  bad_token,
  forbidden,
  old_token,
  count
};
inline constexpr size_t kReaches = static_cast<size_t>(Reach::count);

struct ReachRow {
  Reach reach;
  std::string_view what;
};
inline constexpr std::array<ReachRow, kReaches> kReachRows{{
    {Reach::moved, "instances that an operator moved"},
    {Reach::migrated, "instances that an operator migrated"},
    {Reach::bulk, "bulk operations"},
    {Reach::named_signal, "signals by name that were delivered"},
    {Reach::kept_signal, "signals by name that were kept"},
    {Reach::limited, "jobs that waited for their limit"},
    {Reach::chained, "instances that followed another one"},
    {Reach::scheduled, "instances that a schedule started"},
    {Reach::repeated_call, "calls of a processor that were repeated"},
    {Reach::joined, "writes that joined a transaction"},
    {Reach::refused_conflict, "transactions that were refused"},
    {Reach::search_job, "search jobs that were read"},
    {Reach::foreign, "requests for things of another tenant"},
    {Reach::bad_token, "requests with a bad token"},
    {Reach::forbidden, "requests without the permission"},
    {Reach::old_token, "requests whose token had expired"},
}};

struct ReachCounts {
  std::array<uint64_t, kReaches> of{};
  uint64_t& operator[](Reach reach) { return of[static_cast<size_t>(reach)]; }
};

}  // namespace pawl::sim

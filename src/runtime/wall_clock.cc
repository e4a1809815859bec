#include "runtime/wall_clock.h"

#include <time.h>

#include "base/log.h"

namespace pawl {
namespace {

// A smaller step back is followed: the kernel's own time never goes back, and timers are late by
// less than this.
constexpr Time kStep = kSecond;
// While the system clock is behind, now() loses a 64th of each second: an hour is made up in less
// than three days, and no timer is late by more than 1.6 %.
constexpr Time kSlowdown = 64;
// Two readings further apart were interrupted: their difference says nothing.
constexpr Time kQuickReading = 100 * kMillisecond;

Time read_clock(clockid_t id) {
  timespec t;
  clock_gettime(id, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

}  // namespace

Time system_now() { return read_clock(CLOCK_REALTIME); }

WallClock::WallClock(Sources sources)
    : sources_(std::move(sources)), offset_(sources_.wall() - sources_.steady()) {}

WallClock::WallClock() : WallClock({system_now, [] { return read_clock(CLOCK_MONOTONIC); }}) {}

Time WallClock::now() {
  for (;;) {
    const Time steady = sources_.steady();
    const Time wall = sources_.wall();
    const Time offset = wall - steady;
    // Also when the system clock was set forward again: the state of the step back must end.
    if (behind() > 0) return advance_alone(steady, offset);
    const Time largest = offset_.load(std::memory_order_relaxed);
    if (offset <= largest) {
      if (largest - offset < kStep) return wall;
      return advance_alone(steady, offset);
    }
    // The system clock was set forward, or this thread was interrupted between the two readings.
    if (sources_.steady() - steady > kQuickReading) continue;
    raise_offset(offset);
    return wall;
  }
}

// The system clock was set back by `offset_ - offset`.
Time WallClock::advance_alone(Time steady, Time offset) {
  std::lock_guard lock(mutex_);
  const Time largest = offset_.load();
  if (!alone_) {
    alone_ = true;
    alone_since_ = steady;
    log(Level::warn, "the system clock was set back; timers go on by the monotonic clock",
        {{"seconds", (largest - offset) / kSecond}});
  }
  const Time slowed = std::max(offset, largest - (steady - alone_since_) / kSlowdown);
  const bool caught_up = slowed - offset < kStep;
  behind_.store(caught_up ? 0 : slowed - offset, std::memory_order_relaxed);
  if (caught_up) {
    alone_ = false;
    offset_.store(offset);
    log(Level::info, "the system clock has caught up with the time of the server");
  }
  return steady + slowed;
}

void WallClock::not_before(Time time) { raise_offset(time - sources_.steady()); }

void WallClock::raise_offset(Time offset) {
  Time largest = offset_.load();
  while (offset > largest && !offset_.compare_exchange_weak(largest, offset)) {}
}

}  // namespace pawl

#pragma once
// WallClock is the system's clock without its steps back. When the system clock is set back,
// timers, leases and retries would stand still for the size of the step. WallClock then goes on
// with the monotonic clock, a 64th slower, until the system clock has caught up with it.

#include <atomic>
#include <functional>
#include <mutex>

#include "base/time.h"

namespace pawl {

// CLOCK_REALTIME, in nanoseconds since 1970.
Time system_now();

class WallClock {
 public:
  // Tests replace the two clocks of the system.
  struct Sources {
    std::function<Time()> wall;
    std::function<Time()> steady;  // never goes back; only differences mean anything
  };
  explicit WallClock(Sources sources);
  WallClock();

  // Thread-safe. Goes back by less than a second at most.
  Time now();
  // After a restart: `time` was recorded already, so now() does not go below it.
  void not_before(Time time);
  // How far the system clock is behind now(); 0 while now() is the system clock.
  Time behind() const { return behind_.load(std::memory_order_relaxed); }

 private:
  Time advance_alone(Time steady, Time offset);
  void raise_offset(Time offset);  // never lowers it

  Sources sources_;
  // now() minus the steady clock: the largest so far.
  std::atomic<Time> offset_;
  std::atomic<Time> behind_{0};
  std::mutex mutex_;  // guards the two members below
  bool alone_ = false;
  Time alone_since_ = 0;  // by the steady clock
};

}  // namespace pawl

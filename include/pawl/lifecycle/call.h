#pragma once
// Deadlines and stop tokens. Every call that can wait takes them as its last argument; without them
// it waits without limit.

#include <chrono>
#include <stop_token>

namespace pawl::lifecycle {

// The time by which a call returns. A write that was submitted before the deadline may still
// happen: `deadline_exceeded` means that the caller stopped waiting, not that nothing was written.
// Read the instance to know.
class deadline {
 public:
  using clock = std::chrono::steady_clock;
  constexpr deadline() = default;  // never
  constexpr explicit deadline(clock::time_point at) : at_(at) {}
  static deadline in(clock::duration from_now) {
    auto now = clock::now();
    return from_now < clock::time_point::max() - now ? deadline(now + from_now) : deadline();
  }
  constexpr bool never() const { return at_ == clock::time_point::max(); }
  bool passed() const { return !never() && clock::now() >= at_; }
  constexpr clock::time_point at() const { return at_; }
  // The earlier of the two.
  constexpr deadline or_before(deadline other) const {
    return deadline(at_ < other.at_ ? at_ : other.at_);
  }

 private:
  clock::time_point at_ = clock::time_point::max();
};

// A stop token, a deadline, or both: m.transition<T>(id, "flying", {}, lc::deadline::in(50ms)).
struct call_options {
  std::stop_token stop;
  deadline until;
  call_options(std::stop_token token = {}, deadline latest = {})
      : stop(std::move(token)), until(latest) {}
  call_options(deadline latest) : until(latest) {}
};

}  // namespace pawl::lifecycle

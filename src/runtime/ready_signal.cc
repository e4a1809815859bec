#include "runtime/ready_signal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace pawl {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void ReadySignal::set() {
  if (state_.exchange(done, std::memory_order_release) != asleep) return;
  // A failure means that no thread sleeps, so there is nothing to wake.
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void ReadySignal::wait() {
  uint32_t was = open;
  if (!state_.compare_exchange_strong(was, asleep, std::memory_order_acquire))
    return;  // already set
  while (state_.load(std::memory_order_acquire) != done)
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, asleep, nullptr, nullptr, 0);
}

bool ReadySignal::wait_until(std::chrono::steady_clock::time_point when) {
  uint32_t was = open;
  if (!state_.compare_exchange_strong(was, asleep, std::memory_order_acquire) && was == done)
    return true;
  auto since =
      std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
  timespec until{since / 1'000'000'000, since % 1'000'000'000};
  while (state_.load(std::memory_order_acquire) != done) {
    // FUTEX_WAIT_BITSET takes an absolute time on the monotonic clock.
    syscall(SYS_futex, &state_, FUTEX_WAIT_BITSET_PRIVATE, asleep, &until, nullptr,
            FUTEX_BITSET_MATCH_ANY);
    if (std::chrono::steady_clock::now() >= when)
      return state_.load(std::memory_order_acquire) == done;
  }
  return true;
}

}  // namespace pawl

#include "base/signal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pawl {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void Signal::set() {
  if (state_.exchange(done, std::memory_order_release) != asleep) return;
  // Nothing to do on failure: without a sleeper there is nobody to wake.
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void Signal::wait() {
  uint32_t was = open;
  if (!state_.compare_exchange_strong(was, asleep, std::memory_order_acquire)) return;  // set already
  while (state_.load(std::memory_order_acquire) != done) syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, asleep, nullptr, nullptr, 0);
}

}  // namespace pawl

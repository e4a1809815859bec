#pragma once
// A ReadySignal is set once by one thread and waited for by one other thread; it must outlive both.
// set() makes a system call only when the other thread already sleeps. std::atomic::wait would spin
// first and a condition variable needs a mutex: both cost more when many threads wait on few cores.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace pawl {

class ReadySignal {
 public:
  void set();
  void wait();
  bool is_set() const { return state_.load(std::memory_order_acquire) == done; }
  bool wait_until(std::chrono::steady_clock::time_point when);  // false: not set by then

 private:
  enum State : uint32_t { open, asleep, done };
  std::atomic<uint32_t> state_{open};
};

}  // namespace pawl

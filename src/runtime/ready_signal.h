#pragma once
// A signal is set once by one thread and waited for by one other; it must outlive both. Setting it
// costs a system call only when the other sleeps already. (std::atomic::wait spins and yields
// first, a condition variable wants a lock of its own: dear when many threads wait on few cores.)

#include <atomic>
#include <chrono>
#include <cstdint>

namespace pawl {

class Signal {
 public:
  void set();
  void wait();
  bool wait_until(std::chrono::steady_clock::time_point when);  // false: it is not set yet

 private:
  enum State : uint32_t { open, asleep, done };
  std::atomic<uint32_t> state_{open};
};

}  // namespace pawl

#pragma once
// A signal is set once by one thread and waited for by one other. Setting it costs a system call only
// when the other sleeps already. (std::atomic::wait spins and yields first, a condition variable wants
// a lock of its own: dear when many threads wait on few cores.)

#include <atomic>
#include <cstdint>

namespace pawl {

class Signal {
 public:
  void set();
  void wait();

 private:
  enum State : uint32_t { open, asleep, done };
  std::atomic<uint32_t> state_{open};
};

}  // namespace pawl

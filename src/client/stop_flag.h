#pragma once
// A flag that a signal handler may raise and that threads can wait for.

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/result.h"

namespace pawl::client {

class StopFlag {
 public:
  StopFlag() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { CHECK(fd_ >= 0); }
  ~StopFlag() { close(fd_); }
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  void raise() {
    int kept = errno;  // a signal handler must not change errno
    uint64_t one = 1;
    // The write fails only when the counter is full; then the flag is raised already.
    [[maybe_unused]] ssize_t n = write(fd_, &one, sizeof one);
    errno = kept;
  }
  // Waits at most `ms` for the flag, without limit when `ms` is negative. Returns whether it is
  // raised.
  bool wait(int ms) const {
    pollfd p{fd_, POLLIN, 0};
    int n;
    do
      n = ::poll(&p, 1, ms);
    while (n < 0 && errno == EINTR && ms < 0);
    return n > 0;
  }

 private:
  int fd_;
};

}  // namespace pawl::client

#pragma once
// A flag that a signal handler may raise and that others can wait for.

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
    int kept = errno;  // a signal handler leaves it as it was
    uint64_t one = 1;
    // It fails only when the counter is full, and then the flag is up.
    [[maybe_unused]] ssize_t n = write(fd_, &one, sizeof one);
    errno = kept;
  }
  // True when it is up; waits for that at most `ms`, for ever when negative.
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

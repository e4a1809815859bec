// A queue under a lock, and an eventfd that wakes the owner.

#include "server/http/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace pawl::server {

Mailbox::Mailbox(MemoryBudget* memory)
    : memory_(memory), wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  CHECK(wake_fd_ >= 0);
}

Mailbox::~Mailbox() { ::close(wake_fd_); }

bool Mailbox::post(Letter letter) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return false;
    letters_.push_back(std::move(letter));
    wake = std::exchange(sleeping_, false);
  }
  if (wake) {
    // The write cannot fail: the counter is at most one, and this object owns the descriptor.
    CHECK(eventfd_write(wake_fd_, 1) == 0);
  }
  return true;
}

void Mailbox::take_or_sleep(std::vector<Letter>& into) {
  into.clear();
  std::lock_guard lock(mutex_);
  letters_.swap(into);
  sleeping_ = into.empty();
}

void Mailbox::awake(std::vector<Letter>& into) {
  std::lock_guard lock(mutex_);
  letters_.swap(into);
  sleeping_ = false;
}

std::vector<Letter> Mailbox::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  return std::exchange(letters_, {});
}

}  // namespace pawl::server

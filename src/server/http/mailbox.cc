// Letters under a lock, and an eventfd as the bell.

#include "server/http/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace pawl::server {

Mailbox::Mailbox() : bell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { CHECK(bell_ >= 0); }

Mailbox::~Mailbox() { ::close(bell_); }

bool Mailbox::post(Letter letter) {
  bool ring = false;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return false;
    letters_.push_back(std::move(letter));
    ring = std::exchange(sleeping_, false);
  }
  if (ring) {
    // Cannot fail: the counter is one at most, and the descriptor lives as long as we do.
    CHECK(eventfd_write(bell_, 1) == 0);
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

#pragma once
// A mailbox is how other threads reach the I/O thread that owns a connection. Many letters cost one
// wake-up: the bell rings only when the owner sleeps.

#include <mutex>
#include <thread>
#include <vector>

#include "wire/message.h"

namespace pawl::server {

// Which request of which connection; a connection that is gone is told by its id, as the descriptor
// is used again.
struct Ticket {
  int fd = -1;
  uint64_t connection = 0;
  uint64_t request = 0;
};

struct Letter {
  enum class Kind { answer, stream, adopt, stop } kind;
  Ticket to{};
  wire::Response response{};
};

// Shared by the loop and everyone who may still answer: an answer may come after the server is
// gone.
class Mailbox {
 public:
  Mailbox();
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  bool post(Letter letter);  // false when the loop has ended; the letter is dropped
  // For the owner.
  int bell() const { return bell_; }
  // Takes what is there; when nothing is, promises to sleep: the next letter rings.
  void take_or_sleep(std::vector<Letter>& into);
  // Stops the bell, whether it rang or not, and takes what came meanwhile.
  void awake(std::vector<Letter>& into);
  std::vector<Letter> close();  // what was posted and not taken

 private:
  std::mutex mutex_;
  std::vector<Letter> letters_;
  bool sleeping_ = false;
  bool closed_ = false;
  int bell_ = -1;
};

}  // namespace pawl::server

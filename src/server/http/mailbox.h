#pragma once
// A mailbox carries messages from other threads to the I/O thread that owns a connection. Many
// letters cost one wake-up: post() wakes the owner only when it sleeps.

#include <mutex>
#include <thread>
#include <vector>

#include "base/memory_budget.h"
#include "wire/message.h"

namespace pawl::server {

// Names a request of a connection. The id tells a closed connection from a newer one with the same
// descriptor.
struct Ticket {
  int fd = -1;
  uint64_t connection = 0;
  uint64_t request = 0;
};

struct Letter {
  enum class Kind { answer, stream, adopt, stop } kind;
  Ticket to{};
  wire::Response response{};
  MemoryCharge charge{};  // of the response
};

// Shared by the loop and all pending answers: an answer may come after the server is gone.
class Mailbox {
 public:
  // The budget, which may be null, must outlive every pending answer and stream.
  explicit Mailbox(MemoryBudget* memory = nullptr);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  bool post(Letter letter);  // false when the loop has ended; the letter is dropped
  MemoryBudget* memory() const { return memory_; }
  // Called by the owner.
  int wake_fd() const { return wake_fd_; }
  // Takes all letters. When there are none, the owner must sleep: the next letter wakes it.
  void take_or_sleep(std::vector<Letter>& into);
  // Ends the sleep, whether a letter came or not, and takes all letters.
  void awake(std::vector<Letter>& into);
  std::vector<Letter> close();  // returns the letters that were not taken

 private:
  MemoryBudget* const memory_;
  std::mutex mutex_;
  std::vector<Letter> letters_;
  bool sleeping_ = false;
  bool closed_ = false;
  int wake_fd_ = -1;
};

}  // namespace pawl::server

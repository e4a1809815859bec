#pragma once
// Fetcher sends the HTTP requests that programs make to the outside world. A few threads send one
// request each at a time and wait for its answer. Redirects are not followed.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "wire/message.h"

namespace pawl::net {

struct Fetch {
  std::string method, url;
  wire::Headers headers;
  Bytes body;
  bool allow_private = false;  // may connect to loopback, private and link-local addresses
};

class Fetcher {
 public:
  // Requests that wait for a thread, and the bytes of their bodies: a few threads send them, and a
  // peer may take half a minute to answer.
  static constexpr size_t kMaxWaiting = 1000;
  static constexpr size_t kMaxWaitingBytes = 64 * 1024 * 1024;

  explicit Fetcher(size_t threads = 4, int timeout_seconds = 30, size_t max_waiting = kMaxWaiting,
                   size_t max_waiting_bytes = kMaxWaitingBytes);
  ~Fetcher();
  // Returns at once. `done` is called later, on a thread of this object, unless the Fetcher is
  // destroyed before the request is begun. When too many requests wait, or too many bytes of them,
  // `done` gets the retryable error FETCH_QUEUE_FULL before this function returns.
  using Done = std::move_only_function<void(Result<wire::Response>)>;
  void send(Fetch fetch, Done done);

 private:
  void loop();
  const int timeout_seconds_;
  const size_t max_waiting_, max_waiting_bytes_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::pair<Fetch, Done>> queue_;
  size_t waiting_bytes_ = 0;  // of the bodies in queue_
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

// Sends one request on the calling thread. A refused request (a malformed URL or header) has the
// code `invalid`; every other failure is `unavailable`, with the reason TIMEOUT or FETCH_FAILED.
// The time limit is for the whole call, however slowly the peer sends or receives.
Result<wire::Response> fetch_now(const Fetch& fetch, int timeout_seconds);

}  // namespace pawl::net

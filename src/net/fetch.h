#pragma once
// Outgoing HTTP: a few threads that each send one request at a time and wait for its answer. For
// what programs ask of the outside, not for clients of ours.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "wire/message.h"

namespace pawl::server {

struct Fetch {
  std::string method, url;  // http or https
  wire::Headers headers;
  Bytes body;
  bool allow_private = false;  // loopback, private and link-local addresses too
};

class Fetcher {
 public:
  explicit Fetcher(size_t threads = 4, int timeout_seconds = 30);
  ~Fetcher();
  // Returns at once; `done` comes later, on a thread of this object. Redirects are not followed.
  using Done = std::move_only_function<void(Result<wire::Response>)>;
  void send(Fetch fetch, Done done);

 private:
  void loop();
  const int timeout_seconds_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::pair<Fetch, Done>> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

// One request, on this thread.
Result<wire::Response> fetch_now(const Fetch& fetch, int timeout_seconds);

}  // namespace pawl::server

#pragma once
// The open streams of machine clients, so that they end when the client is deleted or gets a new
// secret. A stream is checked when it begins and may then stay open for days. Thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace pawl::server {

class ClientStreams {
 public:
  // `end` asks the stream to end. It is called at most once, under the lock of this object, so it
  // must neither block nor call back.
  uint64_t add(std::string_view client, std::function<void()> end);
  // The stream has ended by itself. After this call, `end` is not running and will not be called.
  void remove(uint64_t id);
  void end_all(std::string_view client);
  size_t size() const;

 private:
  struct Row {
    std::string client;
    std::function<void()> end;
  };
  mutable std::mutex mutex_;
  std::map<uint64_t, Row> rows_;
  std::multimap<std::string, uint64_t, std::less<>> by_client_;
  uint64_t last_ = 0;
};

}  // namespace pawl::server

#pragma once
// The open streams of callers with tokens. A stream is checked when it begins and could then stay
// open for days, so it is ended when its token expires, and when the machine client that got the
// token is deleted or gets a new secret. Thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/time.h"

namespace pawl::server {

class TokenStreams {
 public:
  // `client` is empty when the token belongs to no machine client; `until` is when it expires.
  // `end` asks the stream to end. It is called at most once, under the lock of this object, so it
  // must neither block nor call back.
  uint64_t add(std::string_view client, Time until, std::function<void()> end);
  // The stream has ended by itself. After this call, `end` is not running and will not be called.
  void remove(uint64_t id);
  void end_all(std::string_view client);
  // Ends the streams whose tokens have expired before `now`.
  void end_expired(Time now);
  size_t size() const;

 private:
  struct Row {
    std::string client;
    Time until;
    std::function<void()> end;
  };
  void erase(std::map<uint64_t, Row>::iterator row);  // needs the lock
  mutable std::mutex mutex_;
  std::map<uint64_t, Row> rows_;
  std::set<std::pair<std::string, uint64_t>, std::less<>> by_client_;
  std::set<std::pair<Time, uint64_t>> by_time_;
  uint64_t last_ = 0;
};

}  // namespace pawl::server

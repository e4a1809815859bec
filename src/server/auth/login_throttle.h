#pragma once
// LoginThrottle slows down callers that guess client secrets. Only failed logins count:
//   - of one client from one address, kPerPair a minute;
//   - from one address with any client, kPerAddress a minute;
//   - of one client from all addresses, kPerClient a minute. An address from which the client has
//     logged in lately is exempt, so strangers cannot lock the client out.
// A caller over a limit waits until one more failure is allowed, even if its secret is right.
//
// The table holds at most limits::kLoginKeys entries; the one that expires first is dropped when it
// is full. An IPv6 address counts by its /64 network, which one subscriber has to itself.
// Thread-safe.

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/limits.h"
#include "base/time.h"

namespace pawl::server {

class LoginThrottle {
 public:
  static constexpr int kPerPair = 10;
  static constexpr int kPerAddress = 60;
  static constexpr int kPerClient = 100;

  // `now` never goes back.
  explicit LoginThrottle(std::function<Time()> now, size_t max_keys = limits::kLoginKeys)
      : now_(std::move(now)), max_keys_(max_keys) {}

  // The time that the caller must wait before its next try; nothing when it may try now.
  std::optional<Time> wait(std::string_view client, std::string_view address) const;
  void failed(std::string_view client, std::string_view address);
  void succeeded(std::string_view client, std::string_view address);
  size_t keys() const;

 private:
  struct Entry {
    Time paid_until = 0;  // each failure adds its share of a minute
    Time trusted_until = 0;
    Time expires() const { return std::max(paid_until, trusted_until); }
  };
  Time left(const std::string& key, int per_minute, Time now) const;
  Entry& entry(const std::string& key, Time now);
  void count(const std::string& key, int per_minute, Time now);

  const std::function<Time()> now_;
  const size_t max_keys_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace pawl::server

#include "server/auth/login_throttle.h"

#include <algorithm>

#include "base/hash.h"
#include "server/http/address.h"

namespace pawl::server {
namespace {

constexpr Time kMinute = 60 * kSecond;
constexpr Time kTrusted = 600 * kSecond;

// The client id comes from the caller and may be long, so keys are hashes.
std::string key_of(std::string_view kind, std::string_view client, std::string_view network) {
  std::string text(kind);
  text.append(client).append(1, '\0').append(network);
  return std::string(view(sha256(text)).substr(0, 16));
}

struct Keys {
  std::string pair, address, client;
  Keys(std::string_view client_id, std::string_view from) {
    std::string network = network_of(from);
    pair = key_of("pair ", client_id, network);
    address = key_of("address ", {}, network);
    client = key_of("client ", client_id, {});
  }
};

}  // namespace

Time LoginThrottle::left(const std::string& key, int per_minute, Time now) const {
  auto found = entries_.find(key);
  if (found == entries_.end()) return 0;
  // A full minute is paid for when the limit is reached.
  return std::max<Time>(0, found->second.paid_until - now - kMinute + kMinute / per_minute);
}

std::optional<Time> LoginThrottle::wait(std::string_view client, std::string_view address) const {
  Keys keys(client, address);
  Time now = now_();
  std::lock_guard lock(mutex_);
  Time longest = std::max(left(keys.pair, kPerPair, now), left(keys.address, kPerAddress, now));
  auto pair = entries_.find(keys.pair);
  bool trusted = pair != entries_.end() && pair->second.trusted_until > now;
  if (!trusted) longest = std::max(longest, left(keys.client, kPerClient, now));
  return longest > 0 ? std::optional(longest) : std::nullopt;
}

LoginThrottle::Entry& LoginThrottle::entry(const std::string& key, Time now) {
  auto found = entries_.find(key);
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= max_keys_) {
    std::erase_if(entries_, [&](const auto& row) { return row.second.expires() <= now; });
    if (entries_.size() >= max_keys_)
      entries_.erase(std::min_element(
          entries_.begin(), entries_.end(),
          [](const auto& a, const auto& b) { return a.second.expires() < b.second.expires(); }));
  }
  return entries_[key];
}

void LoginThrottle::count(const std::string& key, int per_minute, Time now) {
  Entry& row = entry(key, now);
  row.paid_until = std::max(row.paid_until, now) + kMinute / per_minute;
}

void LoginThrottle::failed(std::string_view client, std::string_view address) {
  Keys keys(client, address);
  Time now = now_();
  std::lock_guard lock(mutex_);
  count(keys.pair, kPerPair, now);
  count(keys.address, kPerAddress, now);
  count(keys.client, kPerClient, now);
}

void LoginThrottle::succeeded(std::string_view client, std::string_view address) {
  Keys keys(client, address);
  Time now = now_();
  std::lock_guard lock(mutex_);
  entry(keys.pair, now) = {.trusted_until = now + kTrusted};
}

size_t LoginThrottle::keys() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace pawl::server

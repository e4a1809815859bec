#pragma once
// An address to listen on: "127.0.0.1:8080", ":8080" (all interfaces), "localhost:0" (any free
// port),
// "[::1]:8080".

#include <string>
#include <string_view>

#include "base/result.h"

namespace pawl::server {

struct Address {
  std::string host;  // empty: all interfaces
  uint16_t port = 0;
  std::string text() const;  // "[::1]:8080"; all interfaces: "0.0.0.0:8080"
  bool is_loopback() const;  // only this machine can reach it
};

Result<Address> parse_address(std::string_view text);

// The network that an IP address without a port counts for in limits: the /64 of an IPv6 address,
// which one subscriber has to itself, and any other address itself.
std::string network_of(std::string_view address);

// A non-blocking listening socket and its real address. Errors name the address and the remedy.
struct Listener {
  int fd = -1;
  Address address;
};
Result<Listener> listen_on(const Address& address);

}  // namespace pawl::server

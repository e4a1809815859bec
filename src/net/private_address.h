#pragma once
// Addresses that only this machine or its own network can reach.

struct sockaddr;

namespace pawl::net {

// True for loopback, private, link-local, multicast and reserved addresses, for IPv6 forms that
// stand for such an IPv4 address, and for every family other than IPv4 and IPv6.
bool is_private(const sockaddr* address);

}  // namespace pawl::net

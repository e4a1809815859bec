#include "net/private_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

namespace pawl::net {

namespace {

// An IPv4 network in host byte order; `bits` is the length of its prefix.
struct Network {
  uint32_t address;
  int bits;
};

constexpr Network kPrivateNetworks[] = {
    {0x00000000, 8},   // this network
    {0x0a000000, 8},   // private
    {0x64400000, 10},  // carrier-grade NAT
    {0x7f000000, 8},   // loopback
    {0xa9fe0000, 16},  // link-local
    {0xac100000, 12},  // private
    {0xc0a80000, 16},  // private
    {0xe0000000, 3},   // multicast and reserved
};

bool is_private_v4(uint32_t address) {
  for (const Network& network : kPrivateNetworks)
    if (address >> (32 - network.bits) == network.address >> (32 - network.bits)) return true;
  return false;
}

// The IPv4 address inside an IPv6 address, in host byte order.
uint32_t v4_at(const in6_addr& address, size_t offset) {
  uint32_t out;
  std::memcpy(&out, address.s6_addr + offset, sizeof out);
  return ntohl(out);
}

bool is_private_v6(const in6_addr& a) {
  // 64:ff9b::/96, which routers translate to the IPv4 address in the last four bytes.
  static constexpr uint8_t kNat64[12] = {0x00, 0x64, 0xff, 0x9b};
  const bool nat64 = std::memcmp(a.s6_addr, kNat64, sizeof kNat64) == 0;
  if (IN6_IS_ADDR_V4MAPPED(&a) || IN6_IS_ADDR_V4COMPAT(&a) || nat64)
    return is_private_v4(v4_at(a, 12));
  // 2002::/16 holds the IPv4 address right after its prefix.
  const bool six_to_four = a.s6_addr[0] == 0x20 && a.s6_addr[1] == 0x02;
  if (six_to_four) return is_private_v4(v4_at(a, 2));
  const bool unique_local = (a.s6_addr[0] & 0xfe) == 0xfc;
  const bool multicast = a.s6_addr[0] == 0xff;
  return IN6_IS_ADDR_LOOPBACK(&a) || IN6_IS_ADDR_UNSPECIFIED(&a) || IN6_IS_ADDR_LINKLOCAL(&a) ||
         IN6_IS_ADDR_SITELOCAL(&a) || unique_local || multicast;
}

}  // namespace

bool is_private(const sockaddr* address) {
  switch (address->sa_family) {
    case AF_INET:
      return is_private_v4(ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr));
    case AF_INET6: return is_private_v6(reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
    default: return true;
  }
}

}  // namespace pawl::net

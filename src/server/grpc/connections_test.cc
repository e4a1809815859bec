#include "server/grpc/connections.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <vector>

namespace pawl::server {
namespace {

// Both ends of connections, closed at the end.
struct Sockets {
  std::vector<std::pair<int, int>> pairs;
  int open() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pairs.emplace_back(ends[0], ends[1]);
    return ends[0];
  }
  // As the library does when a connection ends.
  void close_server_side(size_t which) { close(std::exchange(pairs[which].first, -1)); }
  bool is_shut(size_t which) const {
    char byte;
    return recv(pairs[which].second, &byte, 1, MSG_DONTWAIT) == 0;
  }
  ~Sockets() {
    for (auto [one, other] : pairs) {
      if (one >= 0) close(one);
      close(other);
    }
  }
};

TEST(grpc_connections, the_oldest_that_belong_to_nobody_make_room) {
  Sockets sockets;
  Tenants tenants({});
  GrpcConnections open(3);
  for (const char* peer : {"a:1", "a:2", "a:3"})
    EXPECT_TRUE(open.add(sockets.open(), peer, 0));
  EXPECT_TRUE(open.claim("a:1", tenants.use("t")));
  EXPECT_FALSE(open.add(sockets.open(), "a:4", 1'000)) << "they have time for their first call";
  EXPECT_FALSE(sockets.is_shut(1));
  EXPECT_FALSE(open.add(sockets.open(), "a:5", 3'000)) << "the library has not closed them yet";
  EXPECT_FALSE(sockets.is_shut(0)) << "it belongs to a tenant";
  EXPECT_TRUE(sockets.is_shut(1));
  EXPECT_TRUE(sockets.is_shut(2));
  sockets.close_server_side(1);
  sockets.close_server_side(2);
  EXPECT_TRUE(open.add(sockets.open(), "a:6", 3'100));
  EXPECT_TRUE(open.add(sockets.open(), "a:7", 3'100));
  EXPECT_FALSE(open.add(sockets.open(), "a:8", 3'200));
}

TEST(grpc_connections, a_tenant_has_so_many_and_ended_ones_do_not_count) {
  Sockets sockets;
  Tenants tenants({.connections = 2});
  TenantPtr tenant = tenants.use("t"), other = tenants.use("o");
  GrpcConnections open(10);
  for (const char* peer : {"a:1", "a:2", "a:3"})
    EXPECT_TRUE(open.add(sockets.open(), peer, 0));
  EXPECT_TRUE(open.claim("a:1", tenant));
  EXPECT_TRUE(open.claim("a:1", tenant));
  EXPECT_TRUE(open.claim("a:2", tenant));
  EXPECT_FALSE(open.claim("a:3", tenant));
  EXPECT_TRUE(open.claim("a:3", other));
  EXPECT_TRUE(open.claim("a:99", tenant)) << "a connection that is not known";
  sockets.close_server_side(0);
  open.sweep(1'000);
  EXPECT_EQ(tenant->connections(), 1u);
  EXPECT_TRUE(open.claim("a:3", tenant));
  EXPECT_EQ(other->connections(), 0u);
}

TEST(grpc_connections, more_than_half_is_crowded) {
  Sockets sockets;
  GrpcConnections open(4);
  open.add(sockets.open(), "a:1", 0);
  open.sweep(0);
  EXPECT_FALSE(open.crowded());
  open.add(sockets.open(), "a:2", 0);
  open.sweep(0);
  EXPECT_TRUE(open.crowded());
}

TEST(grpc_connections, both_texts_of_a_peer_are_the_same) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(80);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(peer_of(address), "127.0.0.1:80");
  EXPECT_EQ(peer_of("ipv4:127.0.0.1:80"), "127.0.0.1:80");
  address = {};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(80);
  v6.sin6_addr = in6addr_loopback;
  EXPECT_EQ(peer_of(address), "[::1]:80");
  EXPECT_EQ(peer_of("ipv6:%5B::1%5D:80"), "[::1]:80");
  v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
  v6.sin6_addr.s6_addr[12] = 10;
  EXPECT_EQ(peer_of(address), "10.0.0.1:80");
}

}  // namespace
}  // namespace pawl::server

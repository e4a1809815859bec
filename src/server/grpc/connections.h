#pragma once
// The open connections of the gRPC listener. The library has no limit for them and does not say
// when it closes one, so they are counted by looking at their sockets.
//
// A connection that carries calls of a tenant belongs to it, and counts among the tenant's
// connections. When there is no room for another connection, the oldest ones that belong to nobody
// are closed: a stranger who holds all connections cannot lock out callers with a token.
// Thread-safe.

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/limits.h"
#include "server/ops/tenants.h"

struct sockaddr_storage;

namespace pawl::server {

class GrpcConnections {
 public:
  // Connections over `max` are refused.
  explicit GrpcConnections(size_t max = limits::kConnections) : max_(max) {}
  void set_max(size_t max) { max_ = max; }

  // Adds an accepted connection. Returns false when there is no room: the caller closes it.
  bool add(int fd, std::string peer, int64_t now_ms);
  // A call of the tenant came over the connection of this peer. Returns false when the tenant has
  // too many connections; this one then still belongs to nobody.
  bool claim(const std::string& peer, const TenantPtr& tenant);
  // Finds the connections that have ended. Call it about once a second: until then they count.
  void sweep(int64_t now_ms);
  // Whether unary calls should claim their connections as well. Streams always do. Finding out the
  // peer of a call takes time, and it matters only when there are many connections.
  bool crowded() const { return crowded_.load(std::memory_order_relaxed); }

 private:
  struct Open {
    int fd;
    ino_t inode;  // the connection is open as long as its descriptor is the same socket
    int64_t since_ms;
    std::string peer;
    TenantPtr tenant{};  // null: it belongs to nobody
  };
  using Place = std::list<Open>::iterator;

  void count_locked(int64_t now_ms);
  void close_strangers(int64_t now_ms);
  Place drop(Place at);

  std::atomic<size_t> max_;
  std::atomic<bool> crowded_{false};
  std::mutex mutex_;
  std::list<Open> open_;  // the oldest first
  std::unordered_map<std::string, Place> by_peer_;
  int64_t next_count_ms_ = 0;
};

// Host and port of a peer, such as 127.0.0.1:80 or [::1]:80, of a socket's address and of gRPC's
// text for a peer.
std::string peer_of(const sockaddr_storage& address);
std::string peer_of(std::string_view grpc_text);

}  // namespace pawl::server

#include "server/grpc/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>
#include <optional>

#include "wire/message.h"

namespace pawl::server {
namespace {

// The open connections are counted when there seems to be no room, and not more often than this.
constexpr int64_t kCountEveryMs = 50;
// A new connection has this long to send its first call before it may be closed for another one.
constexpr int64_t kGraceMs = 2'000;
// Connections of nobody that are closed at once when there is no room.
constexpr size_t kCloseAtOnce = 64;

std::optional<ino_t> socket_inode(int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0 || !S_ISSOCK(found.st_mode)) return std::nullopt;
  return found.st_ino;
}

}  // namespace

std::string peer_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  const std::string port = std::to_string(ntohs(v6.sin6_port));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof text);
    return std::string(text) + ":" + port;
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return "[" + std::string(text) + "]:" + port;
}

std::string peer_of(std::string_view grpc_text) {
  for (std::string_view scheme : {"ipv4:", "ipv6:"})
    if (grpc_text.starts_with(scheme))
      return wire::percent_decode(grpc_text.substr(scheme.size()), false);
  return std::string(grpc_text);
}

bool GrpcConnections::add(int fd, std::string peer, int64_t now_ms) {
  const auto inode = socket_inode(fd);
  if (!inode) return false;
  std::lock_guard lock(mutex_);
  if (open_.size() >= max_ && now_ms >= next_count_ms_) count_locked(now_ms);
  if (open_.size() >= max_) return false;
  // A port is used again only after its connection ended.
  if (auto old = by_peer_.find(peer); old != by_peer_.end()) drop(old->second);
  open_.push_back({fd, *inode, now_ms, peer});
  by_peer_[std::move(peer)] = std::prev(open_.end());
  return true;
}

GrpcConnections::Place GrpcConnections::drop(Place at) {
  if (at->tenant) at->tenant->drop_connection();
  by_peer_.erase(at->peer);
  return open_.erase(at);
}

void GrpcConnections::sweep(int64_t now_ms) {
  std::lock_guard lock(mutex_);
  count_locked(now_ms);
}

void GrpcConnections::count_locked(int64_t now_ms) {
  next_count_ms_ = now_ms + kCountEveryMs;
  for (auto at = open_.begin(); at != open_.end();)
    at = socket_inode(at->fd) == at->inode ? std::next(at) : drop(at);
  crowded_ = open_.size() >= max_ / 2;
  if (open_.size() >= max_) close_strangers(now_ms);
}

// The library notices the shutdown and closes the descriptor; the next count finds it closed.
void GrpcConnections::close_strangers(int64_t now_ms) {
  size_t closed = 0;
  for (Open& one : open_) {
    if (closed == kCloseAtOnce || now_ms - one.since_ms < kGraceMs) return;
    if (one.tenant) continue;
    shutdown(one.fd, SHUT_RDWR);
    ++closed;
  }
}

bool GrpcConnections::claim(const std::string& peer, const TenantPtr& tenant) {
  std::lock_guard lock(mutex_);
  const auto found = by_peer_.find(peer);
  if (found == by_peer_.end()) return true;
  TenantPtr& owner = found->second->tenant;
  if (owner == tenant) return true;
  if (!tenant->take_connection()) return false;
  if (owner) owner->drop_connection();
  owner = tenant;
  return true;
}

}  // namespace pawl::server

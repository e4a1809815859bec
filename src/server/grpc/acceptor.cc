#include "server/grpc/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "runtime/monotonic.h"

namespace pawl::server {
namespace {

// The library does not say when it closes a connection, so the open ones are counted when there
// seem to be too many, and not more often than this.
constexpr int64_t kCountEveryMs = 50;
// Pause after accept() failed, for example because there are no descriptors.
constexpr int kPauseMs = 100;

std::optional<ino_t> socket_inode(int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0 || !S_ISSOCK(found.st_mode)) return std::nullopt;
  return found.st_ino;
}

}  // namespace

GrpcAcceptor::GrpcAcceptor(Listener listener, size_t max, Take take)
    : listener_(std::move(listener)),
      max_(max),
      take_(std::move(take)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      thread_([this] { run(); }) {}

GrpcAcceptor::~GrpcAcceptor() {
  const uint64_t one = 1;
  while (write(wake_, &one, sizeof one) < 0 && errno == EINTR) {}
  thread_.join();
  close(wake_);
  close(listener_.fd);
}

void GrpcAcceptor::run() {
  while (true) {
    pollfd wanted[] = {{listener_.fd, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (poll(wanted, 2, -1) < 0 && errno != EINTR) return;
    if (wanted[1].revents) return;
    if (wanted[0].revents) accept_one();
  }
}

void GrpcAcceptor::accept_one() {
  const int fd = accept4(listener_.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    const bool passing = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    if (!passing) poll(nullptr, 0, kPauseMs);
    return;
  }
  const auto inode = socket_inode(fd);
  if (!inode || !has_room()) {
    close(fd);
    return;
  }
  open_.push_back({fd, *inode});
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  take_(listener_.fd, fd);
}

bool GrpcAcceptor::has_room() {
  if (open_.size() < max_) return true;
  if (monotonic_ms() < next_count_ms_) return false;
  next_count_ms_ = monotonic_ms() + kCountEveryMs;
  std::erase_if(open_, [](const Open& one) { return socket_inode(one.fd) != one.inode; });
  return open_.size() < max_;
}

}  // namespace pawl::server

#include "server/grpc/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/monotonic.h"

namespace pawl::server {
namespace {

// Pause after accept() failed, for example because there are no descriptors.
constexpr int kPauseMs = 100;

}  // namespace

GrpcAcceptor::GrpcAcceptor(Listener listener, GrpcConnections& open, Take take)
    : listener_(std::move(listener)),
      open_(open),
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
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  const int fd = accept4(listener_.fd, reinterpret_cast<sockaddr*>(&from), &size,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    const bool passing = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    if (!passing) poll(nullptr, 0, kPauseMs);
    return;
  }
  if (!open_.add(fd, peer_of(from), monotonic_ms())) {
    close(fd);
    return;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  take_(listener_.fd, fd);
}

}  // namespace pawl::server

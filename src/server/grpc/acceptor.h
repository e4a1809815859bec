#pragma once
// Accepts the connections of the gRPC listener, because the library has no limit for them: without
// one, callers take all descriptors of the process.

#include <sys/types.h>

#include <functional>
#include <thread>
#include <vector>

#include "server/http/address.h"

namespace pawl::server {

class GrpcAcceptor {
 public:
  // Gives each accepted connection to `take`, which owns its descriptor from then on. Connections
  // over `max` are closed at once.
  using Take = std::function<void(int listener, int fd)>;
  GrpcAcceptor(Listener listener, size_t max, Take take);
  ~GrpcAcceptor();  // accepts no more
  GrpcAcceptor(const GrpcAcceptor&) = delete;
  GrpcAcceptor& operator=(const GrpcAcceptor&) = delete;

 private:
  // A connection is open as long as its descriptor is the same socket.
  struct Open {
    int fd;
    ino_t inode;
  };
  void run();
  void accept_one();
  bool has_room();

  const Listener listener_;
  const size_t max_;
  const Take take_;
  const int wake_;  // an eventfd: ends the thread
  std::vector<Open> open_;
  int64_t next_count_ms_ = 0;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace pawl::server

#pragma once
// Accepts the connections of the gRPC listener, because the library has no limit for them: without
// one, callers take all descriptors of the process.

#include <functional>
#include <thread>

#include "server/grpc/connections.h"
#include "server/http/address.h"

namespace pawl::server {

class GrpcAcceptor {
 public:
  // Gives each accepted connection to `take`, which owns its descriptor from then on. Connections
  // for which `open` has no room are closed at once. `open` must outlive the acceptor.
  using Take = std::function<void(int listener, int fd)>;
  GrpcAcceptor(Listener listener, GrpcConnections& open, Take take);
  ~GrpcAcceptor();  // accepts no more
  GrpcAcceptor(const GrpcAcceptor&) = delete;
  GrpcAcceptor& operator=(const GrpcAcceptor&) = delete;

 private:
  void run();
  void accept_one();

  const Listener listener_;
  GrpcConnections& open_;
  const Take take_;
  const int wake_;      // an eventfd: ends the thread
  std::thread thread_;  // last: it uses everything above
};

}  // namespace pawl::server

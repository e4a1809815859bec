#pragma once
// Watches the streams of a gRPC server. A stream is ended when its token ends, and when its reader
// leaves a message unread for too long: the message and everything behind it would be held for
// ever. Only server.cc includes this header, because of grpc++.

#include <grpcpp/support/server_interceptor.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "server/auth/auth.h"

namespace pawl::server {

class StreamWatch;

// The streams that are open. Thread-safe.
class OpenStreams {
 public:
  explicit OpenStreams(Authenticator* authenticator) : authenticator_(authenticator) {}
  void end_stalled(int64_t stalled_ms);
  size_t size() const;

 private:
  friend class StreamWatch;
  Authenticator* const authenticator_;  // null: tokens do not end
  mutable std::mutex mutex_;
  std::set<StreamWatch*> watches_;
};

// Makes a watch for every stream. `streams` must outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> watch_streams(
    OpenStreams& streams);

}  // namespace pawl::server

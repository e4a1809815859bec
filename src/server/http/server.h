#pragma once
// An HTTP/1.1 server: sockets on one side, wire::Request and wire::Response on the other. Knows
// nothing of routes or callers; see http_front.h for those.
//
// A few I/O threads, each connection pinned to one. The handler runs on that thread and must not
// block; its answer may come later and from any thread. Answers of one connection leave in the
// order of its requests.

#include <atomic>

#include "net/tls.h"
#include "server/http/address.h"
#include "server/http/parser.h"
#include "wire/route.h"

namespace pawl::server {

struct HttpTimes {
  int64_t request_ms = limits::kRequestSeconds * 1000;
  int64_t idle_ms = limits::kIdleSeconds * 1000;
  int64_t stalled_ms = limits::kStalledSeconds * 1000;
  int64_t sign_ms = limits::kKeepaliveSeconds * 1000;
  int64_t linger_ms = limits::kLingerSeconds * 1000;
  int64_t stop_stream_ms = limits::kStopStreamSeconds * 1000;
};

struct HttpOptions {
  Address address;
  TlsFiles tls{};
  int threads = 2;
  size_t connections = limits::kConnections;
  HttpLimits limits{};
  HttpTimes times{};
  // Words a refusal for a request that never reached the handler (too large, malformed, too slow);
  // the request holds what was understood of it. Unset: a small JSON body.
  std::function<wire::Response(const wire::Request&, const HttpFault&)> refuse{};
};

class HttpLoop;

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(HttpOptions options, wire::Handler handler);
  ~HttpServer();  // stops at once if stop() was not called

  const Address& address() const { return address_; }  // with the real port
  size_t connections() const { return open_; }
  // Stops accepting, answers what was accepted, closes the rest; returns when all is done or after
  // `deadline_ms`, when what is left is cut.
  void stop(int64_t deadline_ms = limits::kStopSeconds * 1000);

 private:
  friend class HttpLoop;
  HttpServer(HttpOptions options, wire::Handler handler, Address address);

  const HttpOptions options_;
  const wire::Handler handler_;
  const Address address_;
  std::unique_ptr<TlsContext> tls_;
  std::atomic<size_t> open_ = 0;
  std::atomic<int64_t> stop_deadline_ms_ = 0;
  std::vector<std::unique_ptr<HttpLoop>> loops_;
  bool stopped_ = false;
};

}  // namespace pawl::server

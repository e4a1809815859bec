#pragma once
// An HTTP/1.1 server: sockets on one side, wire::Request and wire::Response on the other. It knows
// neither routes nor callers; see front.h for those.
//
// The server has a few I/O threads; each connection belongs to one. The handler runs on that thread
// and must not block. Its answer may come later and from any thread. The answers of a connection
// are sent in the order of its requests.

#include <atomic>

#include "base/memory_budget.h"
#include "net/tls.h"
#include "server/http/address.h"
#include "server/http/parser.h"
#include "wire/route.h"

namespace pawl::server {

struct HttpTimes {
  int64_t request_ms = limits::kRequestSeconds * 1000;
  int64_t idle_ms = limits::kIdleSeconds * 1000;
  int64_t stalled_ms = limits::kStalledSeconds * 1000;
  int64_t keepalive_ms = limits::kKeepaliveSeconds * 1000;
  int64_t linger_ms = limits::kLingerSeconds * 1000;
  int64_t stop_stream_ms = limits::kStopStreamSeconds * 1000;
};

struct HttpOptions {
  Address address;
  net::TlsFiles tls{};
  int threads = 2;
  size_t connections = limits::kConnections;
  HttpLimits limits{};
  HttpTimes times{};
  // Words the refusal of a request that never reaches the handler: too large, malformed, too slow.
  // The request holds the part that was parsed. When unset, the refusal is a small JSON body.
  std::function<wire::Response(const wire::Request&, const HttpFault&)> refuse{};
  // Called when the head of a request is complete and its body is not: returns the refusal of a
  // request that the handler would refuse whatever its body is. The body is then not read.
  std::function<std::optional<wire::Response>(const wire::Request&)> refuse_head{};
  // Bodies, unread answers and unread streams are counted here. Null: they are not counted. It must
  // outlive the server and everything that still answers.
  MemoryBudget* memory = nullptr;
};

class HttpLoop;

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(HttpOptions options, wire::Handler handler);
  ~HttpServer();  // stops at once if stop() was not called

  const Address& address() const { return address_; }  // with the real port
  size_t connections() const { return open_; }
  // Stops accepting, answers the accepted requests and closes idle connections. Connections that
  // are left after `deadline_ms` are cut.
  void stop(int64_t deadline_ms = limits::kStopSeconds * 1000);

 private:
  friend class HttpLoop;
  HttpServer(HttpOptions options, wire::Handler handler, Address address);

  const HttpOptions options_;
  const wire::Handler handler_;
  const Address address_;
  std::unique_ptr<net::TlsContext> tls_;
  std::atomic<size_t> open_ = 0;
  std::atomic<int64_t> stop_deadline_ms_ = 0;
  std::vector<std::unique_ptr<HttpLoop>> loops_;
  std::unique_ptr<HttpLoop> acceptor_;  // last: it uses loops_
  bool stopped_ = false;
};

}  // namespace pawl::server

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
#include "runtime/background.h"
#include "server/http/address.h"
#include "server/http/parser.h"
#include "server/ops/tenants.h"
#include "wire/route.h"

namespace pawl::server {

struct HttpTimes {
  int64_t request_ms = limits::kRequestSeconds * 1000;
  int64_t idle_ms = limits::kIdleSeconds * 1000;
  int64_t stalled_ms = limits::kStalledSeconds * 1000;
  int64_t keepalive_ms = limits::kKeepaliveSeconds * 1000;
  int64_t linger_ms = limits::kLingerSeconds * 1000;
  // For the first request of a connection from an address that has many without a valid token.
  int64_t probation_ms = 2000;
  int64_t stop_stream_ms = limits::kStopStreamSeconds * 1000;
};

// What the head of a request decides, whatever its body is.
struct Judged {
  std::optional<wire::Response> refusal{};
  bool close = false;  // the refusal ends the connection
  TenantPtr tenant{};  // of the caller; null: not known
  // Called with the request when its body is complete, in place of the server's handler. It knows
  // what the head decided. Unset: the server's handler is called.
  using Handle = std::move_only_function<void(wire::Request, wire::Respond)>;
  Handle handle{};
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
  // Called once for each request when its head is complete, before its body takes memory. It may
  // set the caller of the request. The rest of a request that it refuses is not read.
  std::function<Judged(wire::Request&)> judge_head{};
  // Counts connections: by address until a request names its tenant. Null: they are not counted. It
  // must outlive the server.
  Tenants* tenants = nullptr;
  // Whether a connection counts for its address before its first authenticated request.
  bool count_strangers = false;
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
  BackgroundThreads background_;
  std::unique_ptr<BackgroundPool> large_requests_;  // after loops_: its tasks answer them
  std::unique_ptr<HttpLoop> acceptor_;              // last: it uses loops_
  bool stopped_ = false;
};

}  // namespace pawl::server

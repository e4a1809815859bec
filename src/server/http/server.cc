// Starts and stops the loops of a server.

#include "server/http/server.h"

#include "runtime/monotonic.h"
#include "server/http/loop.h"

namespace pawl::server {

// Threads for requests with large bodies, and how many of those may wait: the memory budget bounds
// their bodies.
static constexpr size_t kLargeRequestThreads = 3;
static constexpr size_t kWaitingLargeRequests = 1000;

HttpServer::HttpServer(HttpOptions options, wire::Handler handler, Address address)
    : options_(std::move(options)), handler_(std::move(handler)), address_(std::move(address)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpOptions options, wire::Handler handler) {
  CHECK(options.threads > 0);
  std::unique_ptr<net::TlsContext> tls;
  if (options.tls.on()) {
    TRY(tls, net::TlsContext::load(options.tls));
  }
  TRY(Listener listener, listen_on(options.address));
  std::unique_ptr<HttpServer> server(
      new HttpServer(std::move(options), std::move(handler), listener.address));
  server->tls_ = std::move(tls);
  server->large_requests_ =
      server->background_.pool("large requests", kLargeRequestThreads, kWaitingLargeRequests);
  for (int i = 0; i < server->options_.threads; ++i)
    server->loops_.push_back(std::make_unique<HttpLoop>(*server, -1));
  server->acceptor_ = std::make_unique<HttpLoop>(*server, listener.fd);
  for (auto& loop : server->loops_)
    loop->start();
  server->acceptor_->start();
  return server;
}

void HttpServer::stop(int64_t deadline_ms) {
  if (std::exchange(stopped_, true)) return;
  stop_deadline_ms_ = monotonic_ms() + deadline_ms;
  acceptor_->mailbox()->post({Letter::Kind::stop});
  for (auto& loop : loops_)
    loop->mailbox()->post({Letter::Kind::stop});
  acceptor_->join();
  for (auto& loop : loops_)
    loop->join();
}

HttpServer::~HttpServer() { stop(0); }

}  // namespace pawl::server

#pragma once
// Sends the HTTP requests of worlds (sys/http.request) with the fetcher of net/.

#include "faces/worlds/executors.h"
#include "net/fetch.h"

namespace pawl::worlds {

class Outgoing final : public HttpClient {
 public:
  explicit Outgoing(int timeout_seconds) : fetcher_(kThreads, timeout_seconds) {}
  void send(HttpCall call, std::move_only_function<void(Result<HttpReply>)> done) override {
    net::Fetch fetch{std::move(call.method), std::move(call.url), std::move(call.headers),
                     std::move(call.body), call.allow_private};
    fetcher_.send(std::move(fetch), [done = std::move(done)](Result<wire::Response> r) mutable {
      if (!r) return done(fail(std::move(r.error())));
      done(HttpReply{r->status, std::move(r->headers), std::move(r->body)});
    });
  }

 private:
  static constexpr int kThreads = 4;
  net::Fetcher fetcher_;
};

}  // namespace pawl::worlds

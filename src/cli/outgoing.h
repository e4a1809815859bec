#pragma once
// Sends the HTTP requests of worlds.

#include "faces/worlds/executors.h"
#include "net/fetch.h"

namespace pawl::cli {

class Outgoing final : public worlds::HttpClient {
 public:
  explicit Outgoing(int timeout_seconds) : fetcher_(4, timeout_seconds) {}
  void send(worlds::HttpCall call,
            std::move_only_function<void(Result<worlds::HttpReply>)> done) override {
    net::Fetch fetch{std::move(call.method), std::move(call.url), std::move(call.headers),
                     std::move(call.body), call.allow_private};
    fetcher_.send(std::move(fetch), [done = std::move(done)](Result<wire::Response> r) mutable {
      if (!r) return done(fail(std::move(r.error())));
      done(worlds::HttpReply{r->status, std::move(r->headers), std::move(r->body)});
    });
  }

 private:
  net::Fetcher fetcher_;
};

}  // namespace pawl::cli

#pragma once
// The executors of this process: sys/http.request, with an allowlist. Whoever owns sockets gives
// the client; this file decides what it may ask for and turns what comes back into a receipt.

#include "faces/worlds/service.h"

namespace pawl::worlds {

struct HttpCall {
  std::string method, url;
  wire::Headers headers;
  Bytes body;
  // False: the client must refuse addresses that are loopback, private or link-local once resolved.
  bool allow_private = false;
};
struct HttpReply {
  int status = 0;
  wire::Headers headers;
  Bytes body;
};
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Returns at once; `done` comes later, from any thread.
  virtual void send(HttpCall call, std::move_only_function<void(Result<HttpReply>)> done) = 0;
};

// Whether a url may be reached, and whether at a private address. `allow` as
// FaceOptions::http_allow.
struct Allowed {
  bool yes = false, at_private = false;
};
Allowed allowed(std::string_view url, const std::vector<std::string>& allow);

class Executors final : public Outbox {
 public:
  Executors(Service& service, HttpClient* client) : service_(service), client_(client) {}
  void opened(const EffectPtr& effect) override;
  void closed(const Effect&) override {}  // a late reply finds its effect gone

 private:
  void finish(const Effect& effect, const Bytes& intent, Time started, Result<HttpReply> reply);
  void settle(const std::string& id, const WorldId& world_id, IntentReceipt receipt);
  Result<HttpCall> plan(const Effect& effect, const PendingIntent& intent) const;
  Service& service_;
  HttpClient* client_;
};

}  // namespace pawl::worlds

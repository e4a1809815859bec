#pragma once
// The executors of this process: sys/http.request, with an allowlist. The composition provides the
// HTTP client; this file decides which requests it may send and turns its replies into receipts.

#include "faces/worlds/service/service.h"
#include "wire/message.h"

namespace pawl::worlds {

struct HttpCall {
  std::string method, url;
  wire::Headers headers;
  Bytes body;
  // False: the client must refuse hosts that resolve to loopback, private or link-local addresses.
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
  // Returns at once. `done` is called later, from any thread.
  virtual void send(HttpCall call, std::move_only_function<void(Result<HttpReply>)> done) = 0;
};

// Whether a url may be requested, and whether at a private address. `allow` is
// FaceOptions::http_allow.
struct UrlPermission {
  bool yes = false, at_private = false;
};
UrlPermission permission_for(std::string_view url, const std::vector<std::string>& allow);

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

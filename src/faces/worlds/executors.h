#pragma once
// The executors of this process: sys/http.request, with an allowlist. The composition provides the
// HTTP client; this file decides which requests it may send and turns its replies into receipts.

#include <deque>
#include <map>
#include <mutex>

#include "faces/worlds/service/service.h"
#include "runtime/background.h"
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
  // The error of a request that was not sent because too many wait.
  static constexpr Reason kQueueFull{"FETCH_QUEUE_FULL"};
  // Returns at once. `done` is called later, from any thread, or at once with kQueueFull.
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
  // `background` must outlive the executors. `client` may be null: then requests are refused.
  Executors(Service& service, Background& background, HttpClient* client);
  void opened(const EffectPtr& effect) override;
  void closed(const Effect&) override {}  // a late reply finds its effect gone

 private:
  void finish(const Effect& effect, const Bytes& intent, Time started, Result<HttpReply> reply);
  // A receipt that was refused because the world or the server is busy waits for its next try.
  struct Settling {
    std::string effect_id;
    WorldId world_id;
    IntentReceipt receipt;
    int tries = 0;
  };
  // Tries the request again when the client has room.
  void postpone(const std::string& effect_id);
  void send_postponed();
  void settle(Settling settling);
  void settle_later(Settling settling);
  Time settle_due();
  Result<HttpCall> plan(const Effect& effect, const PendingIntent& intent) const;
  Service& service_;
  Background& background_;
  HttpClient* client_;
  std::mutex mutex_;                         // guards the next two
  std::multimap<Time, Settling> waiting_;    // by the time of the next try
  std::deque<std::string> postponed_;        // ids of effects; their requests are in the cells
  Time postponed_due_ = 0;                   // used by the loop alone
  std::unique_ptr<BackgroundLoop> retries_;  // the last member: it ends before the others
};

}  // namespace pawl::worlds

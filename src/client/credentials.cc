#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <mutex>

#include "base/bytes.h"
#include "client/http.h"
#include "json/text.h"
#include "pawl/client.h"
#include "wire/message.h"
#include "wire/status.h"

namespace pawl {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTimeoutMs = 30'000;
// Assumed for a token whose answer does not say how long it lasts.
constexpr int64_t kShortLifeS = 60;

// The current token of a machine client, renewed when it expires or when the server refuses it.
class MachineToken {
 public:
  MachineToken(std::string_view server, const std::string& basic)
      : http_(client::open_http(server, kTimeoutMs)),
        request_{"POST",
                 "/api/oauth/token",
                 {{"Authorization", "Basic " + basic},
                  {"Content-Type", "application/x-www-form-urlencoded"}},
                 "grant_type=client_credentials"} {}

  // The lock is held while the token is fetched, so threads that need a new token share one
  // request.
  Result<std::string> get(bool fresh) {
    std::lock_guard lock(mutex_);
    if (!fresh && !token_.empty() && Clock::now() < good_until_) return token_;
    auto reply = http_->send(request_);
    if (!reply) return std::unexpected(client::no_answer(*http_, reply.error()));
    auto value = json::parse(reply->body);
    if (reply->status != 200 || !value)
      return fail(wire::code_of_http(reply->status), "no-token",
                  "the server gives no token: " + reply->body.substr(0, 200));
    token_ = value->string_or("access_token");
    const json::Value* life = value->find("expires_in");
    int64_t life_s =
        life && life->is_number() ? life->as_int64().value_or(kShortLifeS) : kShortLifeS;
    // The token is renewed when a tenth of its life is left.
    good_until_ = Clock::now() + std::chrono::milliseconds(life_s * 900);
    return token_;
  }

 private:
  std::mutex mutex_;
  const std::unique_ptr<net::HttpClient> http_;
  const net::HttpRequest request_;
  std::string token_;
  Clock::time_point good_until_{};
};

}  // namespace

Token credentials(std::string server, std::string client_id, std::string secret) {
  // RFC 6749 wants both form-encoded before they go into the Basic header: either may hold a colon.
  std::string pair = wire::percent_encode(client_id) + ":" + wire::percent_encode(secret);
  // Every copy of the Token shares the machine token.
  auto held = std::make_shared<MachineToken>(server, base64(pair));
  return Token([held](bool fresh) { return held->get(fresh); });
}

}  // namespace pawl

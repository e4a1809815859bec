#include "net/http_client.h"

#include "net/exchange.h"

namespace pawl::net {

namespace {

// Sessions kept for reuse. A session that comes back when there are this many is closed.
constexpr size_t kMaxIdleSessions = 64;

// curl_global_init must run before any other function of libcurl. A local static makes that safe
// when two threads construct their first client at once.
void init_curl_once() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(done == CURLE_OK);
}

// Gives a call without a deadline one after `timeout`. A timeout beyond what the clock can hold
// leaves the call without one.
HttpCall with_deadline(HttpCall call, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point now = Clock::now();
  const bool none = call.deadline == Clock::time_point::max();
  if (none && timeout < Clock::time_point::max() - now) call.deadline = now + timeout;
  return call;
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  const std::string* found = wire::find_header(headers, name);
  return found ? std::string_view(*found) : std::string_view();
}

HttpClient::HttpClient(HttpClientOptions options) : options_(std::move(options)) {
  init_curl_once();
}

HttpClient::~HttpClient() = default;

// The session used last comes first: its connection is the least likely to have been closed by the
// server.
std::unique_ptr<CurlSession> HttpClient::take_session() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto out = std::move(idle_.back());
      idle_.pop_back();
      return out;
    }
  }
  return std::make_unique<CurlSession>();
}

void HttpClient::keep_session(std::unique_ptr<CurlSession> session) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdleSessions) idle_.push_back(std::move(session));
}

Result<HttpAnswer> HttpClient::send(const HttpRequest& request, const HttpCall& call) {
  Exchange exchange(options_, request, nullptr);
  TRY_OK(exchange.check());
  auto session = take_session();
  auto answer = session->run(exchange, with_deadline(call, options_.timeout), {});
  keep_session(std::move(session));
  return answer;
}

Result<HttpAnswer> HttpClient::stream(const HttpRequest& request, const HttpCall& call,
                                      std::chrono::milliseconds max_silence,
                                      const OnPiece& on_piece) {
  Exchange exchange(options_, request, &on_piece);
  TRY_OK(exchange.check());
  auto session = take_session();
  auto answer = session->run(exchange, with_deadline(call, options_.timeout), max_silence);
  keep_session(std::move(session));
  return answer;
}

}  // namespace pawl::net

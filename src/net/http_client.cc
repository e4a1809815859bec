#include "net/http_client.h"

#include "net/exchange.h"

namespace pawl::net {

namespace {

// More idle sessions are closed.
constexpr size_t kMaxIdleSessions = 64;

void init_curl_once() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(done == CURLE_OK);
}

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

#pragma once
// HttpClient is the one HTTP/1.1 client of Pawl, built on libcurl. It follows no redirects, uses no
// proxy and bounds the size of every answer. It sends a request that changes something (any method
// but GET and HEAD) at most once.
//
// Connections are kept and reused. Thread-safe: calls on several threads use several connections.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "net/url.h"
#include "wire/message.h"

namespace pawl::net {

// The deadline passed. The server may still carry out the request.
inline constexpr Reason kTimedOut{"TIMEOUT"};
// The caller's stop token was used. The server may still carry out the request.
inline constexpr Reason kStopped{"STOPPED"};
// No connection was made, so the server has not seen the request.
inline constexpr Reason kUnreachable{"UNREACHABLE"};
// The connection broke, or what came is not a valid answer.
inline constexpr Reason kBadAnswer{"BAD_ANSWER"};
// The TLS handshake failed, most often because the certificate is not trusted or names another
// host. Its code is `denied`, since waiting does not help.
inline constexpr Reason kBadCertificate{"BAD_CERTIFICATE"};
inline constexpr Reason kBadCaFile{"BAD_CA_FILE"};
inline constexpr Reason kBadMethod{"BAD_METHOD"};
inline constexpr Reason kBadHeader{"BAD_HEADER"};

struct HttpRequest {
  std::string method;
  std::string url;  // absolute, or a path on HttpClientOptions::base_url
  wire::Headers headers{};
  Bytes body{};
};

struct HttpAnswer {
  int status = 0;
  wire::Headers headers{};
  Bytes body{};

  std::string_view header(std::string_view name) const;  // case ignored; empty when absent
};

struct HttpClientOptions {
  std::string base_url{};    // "http://127.0.0.1:8080", for requests whose url is a path
  wire::Headers headers{};   // added to each request that has no header of the same name
  std::string media_type{};  // Content-Type of a body whose request names none
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  // of calls without a deadline
  // PEM file with the trusted certificate authorities. When empty, those of the system are trusted,
  // or those that the environment variable SSL_CERT_FILE names.
  std::string ca_file{};
  size_t max_answer_bytes = 64u << 20;
  bool public_addresses_only = false;  // refuses to connect to private addresses
  // Accepts an answer that ends where the connection ends, so that nobody can tell whether all of
  // it came. Pawl servers always send a length.
  bool allow_unknown_length = false;
};

struct HttpCall {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::stop_token stop{};
};

class CurlSession;

class HttpClient {
 public:
  explicit HttpClient(HttpClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Every status is an answer; an error means that none came.
  Result<HttpAnswer> send(const HttpRequest& request, const HttpCall& call = {});

  // Passes the body of a 200 answer to `on_piece` as it arrives, until the body ends or `on_piece`
  // returns false. The deadline is for the head of the answer. After the head, the call times out
  // when nothing arrives for `max_silence`. The body of any other status is in the result.
  using OnPiece = std::function<bool(BytesView piece)>;
  Result<HttpAnswer> stream(const HttpRequest& request, const HttpCall& call,
                            std::chrono::milliseconds max_silence, const OnPiece& on_piece);

  const HttpClientOptions& options() const { return options_; }

 private:
  std::unique_ptr<CurlSession> take_session();
  void keep_session(std::unique_ptr<CurlSession> session);

  const HttpClientOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CurlSession>> idle_;
};

}  // namespace pawl::net

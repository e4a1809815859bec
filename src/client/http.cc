#include "client/http.h"

#include <fmt/format.h>

namespace pawl::client {

namespace {

constexpr int kBadCertificate = 495;
constexpr int kBadRequest = 400;

}  // namespace

std::unique_ptr<net::HttpClient> open_http(std::string_view server, int timeout_ms) {
  return std::make_unique<net::HttpClient>(
      net::HttpClientOptions{.base_url = net::server_url(server),
                             .media_type = "application/json",
                             .timeout = std::chrono::milliseconds(timeout_ms)});
}

Refusal no_answer(const net::HttpClient& http, const Error& error) {
  const std::string& server = http.options().base_url;
  if (error.is(net::kBadCertificate))
    return {.status = kBadCertificate,
            .code = "bad-certificate",
            .message =
                fmt::format("no TLS with {}: {}. Name its certificate authority with SSL_CERT_FILE",
                            server, error.message)};
  if (error.code == Code::invalid)
    return {.status = kBadRequest, .code = "invalid", .message = error.message};
  return {.status = 0,
          .code = "unreachable",
          .message = fmt::format("no answer from {} ({}): is `pawl serve` running there?", server,
                                 error.message)};
}

}  // namespace pawl::client

#include "client/http.h"

#include <fmt/format.h>

namespace pawl::client {

std::unique_ptr<net::HttpClient> open_http(std::string_view server, int timeout_ms) {
  return std::make_unique<net::HttpClient>(
      net::HttpClientOptions{.base_url = net::server_url(server),
                             .media_type = "application/json",
                             .timeout = std::chrono::milliseconds(timeout_ms)});
}

Error no_answer(const net::HttpClient& http, const Error& why) {
  const std::string& server = http.options().base_url;
  if (why.is(net::kBadCertificate))
    return {Code::denied, "bad-certificate",
            fmt::format("no TLS with {}: {}. Name its certificate authority with SSL_CERT_FILE",
                        server, why.message)};
  // The request is malformed; repeating it does not help, so the error stays as it is.
  if (why.code == Code::invalid) return why;
  return {
      Code::unavailable,
      "unreachable",
      fmt::format("no answer from {} ({}): is `pawl serve` running there?", server, why.message),
      {},
      true};
}

}  // namespace pawl::client

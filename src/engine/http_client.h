#pragma once
// A small blocking HTTP/1.1 client: connections are kept and used again, an answer is read whole, or
// piece by piece for a stream. For the remote store; it knows no TLS: put a proxy in front.

#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pawl::lifecycle {

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string_view header(std::string_view name) const;  // case ignored
};

struct HttpAsk {
  std::string method, path;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
};

class HttpClient {
 public:
  // "http://host:port"
  static Result<HttpClient> make(std::string_view address, std::string token);
  HttpClient(HttpClient&& other) noexcept;
  ~HttpClient();

  Result<HttpAnswer> send(const HttpAsk& ask);
  // Reads a streamed body until `stop`, the end, or `piece` returns false.
  Result<void> stream(const HttpAsk& ask, std::stop_token stop, const std::function<bool(std::string_view piece)>& piece);

 private:
  HttpClient(std::string host, std::string port, std::string token) : host_(std::move(host)), port_(std::move(port)), token_(std::move(token)) {}
  Result<int> connection(bool& fresh);
  Result<int> dial() const;
  std::string head(const HttpAsk& ask) const;

  std::string host_, port_, token_;
  std::mutex mutex_;
  std::vector<int> idle_;
};

}  // namespace pawl::lifecycle

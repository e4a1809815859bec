#pragma once
// A small blocking HTTP/1.1 client: connections are kept and used again, an answer is read whole,
// or piece by piece for a stream. For the remote store.

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "embed/connection.h"
#include "wire/answer.h"

namespace pawl::lifecycle {

struct HttpAnswer : wire::AnswerHead {
  std::string body{};
};

struct HttpAsk {
  std::string method, path;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
};

struct HttpOptions {
  std::string token{};
  std::chrono::milliseconds timeout =
      std::chrono::seconds(30);  // of a call that has no deadline of its own
  std::string ca_file{};
};

// The status with which a server refused a stream; 0: it was another error.
int refused_with(const Error& error);

class HttpClient {
 public:
  // "http://host:port" or "https://host:port"
  static Result<HttpClient> make(std::string_view address, HttpOptions options);
  HttpClient(HttpClient&& other) noexcept;

  Result<HttpAnswer> send(const HttpAsk& ask, deadline until = {});
  // Reads a streamed body until `stop`, the end, or `piece` returns false. Its head is waited for
  // as long as an answer; after that a server that gives no sign of life for a minute is gone.
  Result<void> stream(const HttpAsk& ask, std::stop_token stop,
                      const std::function<bool(std::string_view piece)>& piece);

 private:
  HttpClient(Place place, HttpOptions options)
      : place_(std::move(place)), options_(std::move(options)) {}
  std::unique_ptr<Connection> kept();
  std::string head(const HttpAsk& ask) const;
  deadline by(deadline until) const {
    return until.never() ? deadline::in(options_.timeout) : until;
  }

  Place place_;
  HttpOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace pawl::lifecycle

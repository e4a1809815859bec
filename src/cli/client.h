#pragma once
// The server as the commands see it. Refusals become errors with the server's own message.

#include <functional>
#include <memory>
#include <string>

#include "json/value.h"
#include "wire/message.h"

namespace pawl::net {
class HttpClient;
}

namespace pawl::cli {

class Client {
 public:
  // `server` is "127.0.0.1:8080", "http://127.0.0.1:8080" or "https://pawl.example". For https, the
  // certificate authorities of the system are trusted, or those that SSL_CERT_FILE names.
  explicit Client(std::string server, std::string token = {});
  // Returns the server's answer, whatever its status. An error means that no answer came.
  Result<wire::Response> send(std::string_view method, std::string_view path,
                              std::string_view body = {}, const wire::Headers& headers = {});
  // Returns the JSON of the answer. A status of 400 or more becomes an error with the server's
  // message. `answered` receives the headers of the answer.
  Result<json::Value> call(std::string_view method, std::string_view path,
                           const json::Value* body = nullptr, const wire::Headers& headers = {},
                           wire::Headers* answered = nullptr);
  // Calls `visit` with each line of a streamed answer, its newline included, until `visit` returns
  // false or the answer ends.
  Result<void> stream(std::string_view path,
                      const std::function<bool(std::string_view line)>& visit);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

 private:
  Error no_answer(const Error& why) const;

  std::unique_ptr<net::HttpClient> http_;
};

// Deploys the loan example to a server.
Result<void> load_example(const std::string& server);

}  // namespace pawl::cli

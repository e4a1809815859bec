#pragma once
// The server as the commands see it: one request at a time, and its refusals in its own words.

#include <functional>
#include <memory>
#include <string>

#include "json/value.h"
#include "wire/message.h"

namespace pawl::lifecycle {
class HttpClient;
}

namespace pawl::cli {

class Client {
 public:
  // "127.0.0.1:8080", "http://127.0.0.1:8080" or "https://pawl.example": the system's authorities
  // vouch for the last, or those of SSL_CERT_FILE.
  explicit Client(std::string server, std::string token = {});
  // One request on a connection that is kept. An error means that no answer came; a 4xx is an
  // answer.
  Result<wire::Response> send(std::string_view method, std::string_view path,
                              std::string_view body = {}, const wire::Headers& headers = {});
  // The same, with the answer's JSON; a status of 400 or more becomes an error in the server's
  // words. `answered`: the answer's headers.
  Result<json::Value> call(std::string_view method, std::string_view path,
                           const json::Value* body = nullptr, const wire::Headers& headers = {},
                           wire::Headers* answered = nullptr);
  // Pieces of a streamed answer as they come, until `visit` returns false or it ends.
  Result<void> stream(std::string_view path, const std::function<bool(std::string_view)>& visit);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

 private:
  Error unreachable(const Error& why) const;

  std::string server_;
  std::unique_ptr<lifecycle::HttpClient> http_;
  Error bad_{};  // why there is none
};

// Deploys the loan example to a server.
Result<void> load_example(const std::string& server);

}  // namespace pawl::cli

#pragma once
// A small blocking HTTP/1.1 client for the commands that talk to a server.

#include <functional>
#include <string>

#include "json/value.h"
#include "wire/message.h"

namespace pawl::cli {

class Client {
 public:
  // "127.0.0.1:8080" or "http://127.0.0.1:8080".
  explicit Client(std::string server, std::string token = {});
  // One request on a connection that is kept. An error means that no answer came; a 4xx is an answer.
  Result<wire::Response> send(std::string_view method, std::string_view path, std::string_view body = {},
                              const wire::Headers& headers = {});
  // The same, with the answer's JSON; a status of 400 or more becomes an error in the server's words.
  Result<json::Value> call(std::string_view method, std::string_view path, const json::Value* body = nullptr);
  // Pieces of a streamed answer as they come, until `visit` returns false or it ends.
  Result<void> stream(std::string_view path, const std::function<bool(std::string_view)>& visit);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

 private:
  Result<void> connect();
  Result<void> write_request(std::string_view method, std::string_view path, std::string_view body, const wire::Headers& headers);
  Result<wire::Response> read_head();
  Result<bool> fill();  // more bytes; false at the end
  Result<std::string> read_line();
  Result<void> read_body(wire::Response& response, const std::function<bool(std::string_view)>* visit);

  std::string host_, port_, token_;
  int fd_ = -1;
  std::string buffer_;
};

// Deploys the loan example to a server.
Result<void> load_example(const std::string& server);

}  // namespace pawl::cli

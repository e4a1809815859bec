#pragma once
// Blocking HTTP/1.1 to one server over connections that are kept. A call takes an idle connection
// or makes one, so threads may share an Http.

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pawl::client {

struct HttpReply {
  int status = 0;
  std::string body;
  int retry_after_s = 0;
};

class Line;  // one connection

class Http {
 public:
  Http(std::string server, int timeout_ms);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  // One attempt. An error means that no answer came; whether the request was done is not known.
  // Code::denied: the server could not prove who it is. `headers` are whole lines with their ends.
  Result<HttpReply> send(std::string_view method, std::string_view path, std::string_view body,
                         std::string_view headers = {});
  const std::string& server() const { return server_; }

 private:
  Result<std::unique_ptr<Line>> connect();
  Result<HttpReply> exchange(std::unique_ptr<Line> line, std::string_view method,
                             std::string_view request);
  void forget();
  Error lost(std::string_view why) const;

  std::string server_, host_, port_;
  int timeout_ms_;
  bool secure_ = false;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Line>> idle_;
};

// 32 hex digits that nobody else makes.
std::string fresh_key();
// Around `ms`, from half to one and a half: so that many who were cut off together do not come back
// together.
int jittered(int ms);

}  // namespace pawl::client

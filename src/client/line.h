#pragma once
// One connection to an HTTP server, plain or with TLS: lines and counted bytes in, bytes out. Calls that
// fail leave errno.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct ssl_st;

namespace pawl::client {

class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // The TLS handshake with a server that must prove to be `host`; why it failed, or empty.
  std::string secure(const std::string& host);
  bool write(std::string_view out);
  // Everything up to the next end of line, without it.
  std::optional<std::string> line();
  bool take(size_t n, std::string& to);
  bool nothing_left() const { return in_.empty(); }

 private:
  bool fill();
  long send_some(std::string_view out);
  long receive_some(char* to, size_t most);

  int fd_;
  ssl_st* tls_ = nullptr;
  std::string in_;
};

}  // namespace pawl::client

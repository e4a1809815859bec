#pragma once
// One connection to an HTTP server, plain or with TLS. Calls that fail leave errno.

#include <memory>
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
  // As recv: how many bytes came, 0 at the end, less when it failed.
  long more(std::string& onto);

 private:
  long send_some(std::string_view out);
  long receive_some(char* to, size_t max);

  int fd_;
  ssl_st* tls_ = nullptr;
};

}  // namespace pawl::client

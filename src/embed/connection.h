#pragma once
// One connection to a server, plain or with TLS over it. Nothing here waits past its deadline or
// after its stop token was asked.

#include <memory>
#include <string>

#include "base/result.h"
#include "net/tls.h"
#include "pawl/lifecycle/call.h"

struct addrinfo;

namespace pawl::lifecycle {

// Whom an https:// server must be vouched for by.
class Trust {
 public:
  // PEM certificates; empty: those of the system.
  static Result<std::shared_ptr<const Trust>> load(const std::string& ca_file);
  explicit Trust(ssl_ctx_st* context) : context_(context) {}
  ~Trust();
  Trust(const Trust&) = delete;
  Trust& operator=(const Trust&) = delete;
  // A session whose peer must prove to be `host`.
  std::unique_ptr<server::TlsSession> connect(const std::string& host) const;

 private:
  ssl_ctx_st* context_;
};

struct Place {
  std::string host, port;
  std::shared_ptr<const Trust> trust{};  // null: plain
};

class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const Place& place, const call_options& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<void> write(std::string_view bytes, const call_options& options);
  // Nothing came while nobody asked: a kept connection that the server has closed is readable.
  bool unused() const;
  // More bytes onto `into`.
  Result<void> more(std::string& into, const call_options& options);

 private:
  explicit Connection(int fd) : fd_(fd) {}
  Result<void> connect(const addrinfo& to, const call_options& options);
  Result<void> handshake(const Place& place, const call_options& options);
  Result<void> ready(short events, const call_options& options);
  Result<void> send_all(std::string_view bytes, const call_options& options);

  int fd_;
  std::unique_ptr<server::TlsSession> tls_;
};

}  // namespace pawl::lifecycle

#pragma once
// TLS for servers, in memory: a session converts ciphertext to plaintext and back. The owner of the
// socket moves the bytes.

#include <memory>
#include <string>

#include "base/bytes.h"

struct ssl_ctx_st;
struct ssl_st;

namespace pawl::net {

struct TlsFiles {
  std::string certificate;  // PEM chain; empty: no TLS
  std::string key;          // PEM
  bool on() const { return !certificate.empty(); }
};

class TlsSession {
 public:
  explicit TlsSession(ssl_st* session) : session_(session) {}
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Appends plaintext to `plain`, and bytes that must be sent (handshake, alerts) to `out`. Returns
  // false when the session is broken or the peer has closed it: send `out` and close the socket.
  bool receive(BytesView cipher, Bytes& plain, Bytes& out);
  bool send(BytesView plain, Bytes& out);
  bool ready() const;      // the handshake is complete
  void close(Bytes& out);  // tells the peer that the end is not a broken connection

 private:
  void drain(Bytes& out);
  ssl_st* session_;
};

// A certificate with its key, loaded once. Accepts TLS 1.2 and later.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> load(const TlsFiles& files);
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  std::unique_ptr<TlsSession> accept() const;

 private:
  ssl_ctx_st* context_;
};

}  // namespace pawl::net

#pragma once
// TLS over bytes: a session turns ciphertext into plaintext and back through memory; whoever holds
// the socket moves the bytes.

#include <memory>
#include <string>

#include "base/bytes.h"

struct ssl_ctx_st;
struct ssl_st;

namespace pawl::server {

struct TlsFiles {
  std::string certificate;  // PEM chain; both empty: no TLS
  std::string key;          // PEM
  bool on() const { return !certificate.empty(); }
};

class TlsSession {
 public:
  explicit TlsSession(ssl_st* session) : session_(session) {}
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Plaintext is appended to `plain`, what must be sent (handshake, alerts) to `out`. False: the
  // session is broken or the peer closed it; send `out` and end.
  bool receive(BytesView cipher, Bytes& plain, Bytes& out);
  bool send(BytesView plain, Bytes& out);
  bool ready() const;      // the handshake is over
  void close(Bytes& out);  // the farewell that tells an end from a cut

 private:
  void drain(Bytes& out);
  ssl_st* session_;
};

// Certificate and key, loaded once; TLS 1.2 and later.
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

}  // namespace pawl::server

#pragma once
// TLS between nodes: both sides show a certificate of one authority. Names in certificates are not
// compared with addresses: the shared secret tells who belongs to the cluster.

#include "net/peer/pipe.h"

namespace pawl::net {

class PeerTls {
 public:
  explicit PeerTls(ssl_ctx_st* context) : context_(context) {}
  ~PeerTls();
  PeerTls(const PeerTls&) = delete;
  PeerTls& operator=(const PeerTls&) = delete;
  std::unique_ptr<TlsSession> connect() const { return begin(true); }
  std::unique_ptr<TlsSession> accept() const { return begin(false); }

 private:
  std::unique_ptr<TlsSession> begin(bool connects) const;
  ssl_ctx_st* context_;
};

}  // namespace pawl::net

#include "net/peer/peer_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace pawl::net {

Result<std::shared_ptr<const PeerTls>> load_peer_tls(const PeerIdentity& identity) {
  if (!identity.tls.on()) return std::shared_ptr<const PeerTls>();
  SSL_CTX* context = SSL_CTX_new(TLS_method());
  CHECK(context != nullptr);
  auto owned = std::make_shared<const PeerTls>(context);
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  auto bad = [](const std::string& what) {
    ERR_clear_error();
    return fail(Code::invalid, "BAD_CERTIFICATE", what);
  };
  if (SSL_CTX_load_verify_locations(context, identity.ca_file.c_str(), nullptr) != 1)
    return bad("cannot read the authority of the cluster's certificates, " + identity.ca_file);
  if (SSL_CTX_use_certificate_chain_file(context, identity.tls.certificate.c_str()) != 1)
    return bad("cannot use the certificate " + identity.tls.certificate);
  if (SSL_CTX_use_PrivateKey_file(context, identity.tls.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    return bad("the key " + identity.tls.key + " does not belong to the certificate " +
               identity.tls.certificate);
  return owned;
}

PeerTls::~PeerTls() { SSL_CTX_free(context_); }

std::unique_ptr<TlsSession> PeerTls::begin(bool connects) const {
  SSL* session = SSL_new(context_);
  CHECK(session != nullptr);
  SSL_set_bio(session, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  if (connects)
    SSL_set_connect_state(session);
  else
    SSL_set_accept_state(session);
  return std::make_unique<TlsSession>(session);
}

}  // namespace pawl::net

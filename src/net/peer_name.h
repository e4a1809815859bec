#pragma once
// Whom the peer of a TLS session must prove to be. For those who link OpenSSL's libssl.

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <string>

namespace pawl::wire {

// A host is a name or an address; a certificate names either.
inline void expect_peer(SSL* session, const std::string& host) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str())) return;
  SSL_set_tlsext_host_name(session, host.c_str());
  SSL_set1_host(session, host.c_str());
}

}  // namespace pawl::wire

// OpenSSL with memory BIOs: OpenSSL reads ciphertext from one buffer and writes it to another, and
// never touches a socket. The error queue of OpenSSL is one for each thread, so every call begins
// by clearing what another session may have left in it.

#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace pawl::net {
namespace {

std::string last_openssl_error() {
  char text[256] = "unknown error";
  if (unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

// Browsers and curl ask for h2 first; we speak http/1.1 only and say so.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  int found = SSL_select_next_proto(&chosen, size, kOurs, sizeof kOurs - 1, offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

}  // namespace

TlsSession::~TlsSession() { SSL_free(session_); }

void TlsSession::drain(Bytes& out) {
  BIO* bio = SSL_get_wbio(session_);
  while (size_t waiting = BIO_ctrl_pending(bio)) {
    size_t had = out.size();
    out.resize(had + waiting);
    int got = BIO_read(bio, out.data() + had, static_cast<int>(waiting));
    out.resize(had + static_cast<size_t>(got > 0 ? got : 0));
    if (got <= 0) return;
  }
}

// A memory BIO takes all bytes. SSL_read is called until it wants more: it also runs the handshake.
bool TlsSession::receive(BytesView cipher, Bytes& plain, Bytes& out) {
  ERR_clear_error();
  BIO_write(SSL_get_rbio(session_), cipher.data(), static_cast<int>(cipher.size()));
  char buffer[16 * 1024];
  while (true) {
    int got = SSL_read(session_, buffer, sizeof buffer);
    if (got > 0) {
      plain.append(buffer, static_cast<size_t>(got));
      continue;
    }
    int why = SSL_get_error(session_, got);
    drain(out);
    ERR_clear_error();
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
  }
}

bool TlsSession::send(BytesView plain, Bytes& out) {
  ERR_clear_error();
  while (!plain.empty()) {
    // SSL_write takes an int, so large texts go in parts of 1 MiB.
    int part = static_cast<int>(std::min<size_t>(plain.size(), 1 << 20));
    int took = SSL_write(session_, plain.data(), part);
    if (took <= 0) return false;
    plain.remove_prefix(static_cast<size_t>(took));
    drain(out);
  }
  return true;
}

bool TlsSession::ready() const { return SSL_is_init_finished(session_) == 1; }

void TlsSession::close(Bytes& out) {
  ERR_clear_error();
  // Before the handshake is complete there is no session to end, and OpenSSL would report an error.
  if (ready()) SSL_shutdown(session_);
  drain(out);
}

Result<std::unique_ptr<TlsContext>> TlsContext::load(const TlsFiles& files) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  CHECK(context != nullptr);
  auto owned = std::make_unique<TlsContext>(context);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return fail(Code::invalid, "BAD_CERTIFICATE",
                "cannot use the certificate " + files.certificate + ": " + last_openssl_error());
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return fail(Code::invalid, "BAD_KEY",
                "the key " + files.key + " cannot be used with " + files.certificate + ": " +
                    last_openssl_error());
  }
  return owned;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

std::unique_ptr<TlsSession> TlsContext::accept() const {
  SSL* session = SSL_new(context_);
  CHECK(session != nullptr);
  SSL_set_bio(session, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_accept_state(session);
  return std::make_unique<TlsSession>(session);
}

}  // namespace pawl::net

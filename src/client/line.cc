#include "client/line.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "net/peer_name.h"

namespace pawl::client {

namespace {

constexpr size_t kPieceBytes = 64u << 20;

std::string why_not(SSL* tls) {
  long verdict = SSL_get_verify_result(tls);
  if (verdict != X509_V_OK) return X509_verify_cert_error_string(verdict);
  unsigned long code = ERR_get_error();
  const char* text = code ? ERR_reason_error_string(code) : nullptr;
  return text ? text : "the handshake failed";
}

// OpenSSL writes without MSG_NOSIGNAL: while one of these lives, a broken connection does not end
// the process.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    int kept = errno;
    timespec now{};
    while (!sigismember(&before_, SIGPIPE) && sigtimedwait(&pipe_, nullptr, &now) > 0) {}
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = kept;
  }

 private:
  sigset_t pipe_, before_;
};

}  // namespace

Line::~Line() {
  if (tls_) SSL_free(tls_);
  close(fd_);
}

std::string Line::secure(const std::string& host) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  if (!context) return "no memory";
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_default_verify_paths(context);
  tls_ = SSL_new(context);
  SSL_CTX_free(context);  // the connection keeps it
  if (!tls_) return "no memory";
  wire::expect_peer(tls_, host);
  SSL_set_fd(tls_, fd_);
  ERR_clear_error();
  NoPipeSignal quiet;
  return SSL_connect(tls_) == 1 ? std::string() : why_not(tls_);
}

long Line::send_some(std::string_view out) {
  if (!tls_) return ::send(fd_, out.data(), out.size(), MSG_NOSIGNAL);
  NoPipeSignal quiet;
  return SSL_write(tls_, out.data(), static_cast<int>(std::min(out.size(), kPieceBytes)));
}

long Line::receive_some(char* to, size_t max) {
  if (!tls_) return recv(fd_, to, max, 0);
  NoPipeSignal quiet;
  return SSL_read(tls_, to, static_cast<int>(max));
}

bool Line::write(std::string_view out) {
  while (!out.empty()) {
    long n = send_some(out);
    if (n < 0 && errno == EINTR && !tls_) continue;
    if (n <= 0) return false;
    out.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

long Line::more(std::string& onto) {
  char piece[16384];
  long n;
  do
    n = receive_some(piece, sizeof piece);
  while (n < 0 && errno == EINTR && !tls_);
  if (n > 0) onto.append(piece, static_cast<size_t>(n));
  return n;
}

}  // namespace pawl::client

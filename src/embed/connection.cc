#include "embed/connection.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "net/peer_name.h"

namespace pawl::lifecycle {

namespace {

// How often a wait looks at its stop token.
constexpr int kLookMs = 100;

std::unexpected<Error> broken(std::string text) {
  return fail(Code::unavailable, "CONNECTION", std::move(text));
}

int wait_ms(const call_options& options) {
  int limit = options.stop.stop_possible() ? kLookMs : -1;
  if (options.until.never()) return limit;
  auto left =
      std::chrono::ceil<std::chrono::milliseconds>(options.until.at() - deadline::clock::now())
          .count();
  int ms = static_cast<int>(std::clamp<long>(left, 0, 3'600'000));
  return limit < 0 ? ms : std::min(ms, limit);
}

}  // namespace

Result<std::shared_ptr<const Trust>> Trust::load(const std::string& ca_file) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  CHECK(context != nullptr);
  auto out = std::make_shared<const Trust>(context);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  ERR_clear_error();
  if (ca_file.empty())
    SSL_CTX_set_default_verify_paths(context);
  else if (SSL_CTX_load_verify_locations(context, ca_file.c_str(), nullptr) != 1)
    return fail(Code::invalid, "BAD_CA_FILE",
                fmt::format("ca_file '{}' holds no certificate in PEM form", ca_file));
  return out;
}

Trust::~Trust() { SSL_CTX_free(context_); }

std::unique_ptr<server::TlsSession> Trust::connect(const std::string& host) const {
  SSL* session = SSL_new(context_);
  CHECK(session != nullptr);
  SSL_set_bio(session, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  wire::expect_peer(session, host);
  SSL_set_connect_state(session);
  return std::make_unique<server::TlsSession>(session);
}

Connection::~Connection() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> Connection::ready(short events, const call_options& options) {
  while (true) {
    if (options.stop.stop_requested()) return broken("the caller stopped waiting");
    pollfd p{fd_, events, 0};
    int n = ::poll(&p, 1, wait_ms(options));
    if (n > 0) return {};
    if (n < 0 && errno != EINTR) return broken(strerror(errno));
    if (options.until.passed())
      return fail(Code::unavailable, "deadline_exceeded",
                  "no answer in time; what was asked may still happen");
  }
}

Result<void> Connection::connect(const addrinfo& to, const call_options& options) {
  fd_ = ::socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to.ai_protocol);
  if (fd_ < 0) return broken(strerror(errno));
  if (::connect(fd_, to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return broken(strerror(errno));
    TRY_OK(ready(POLLOUT, options));
    int bad = 0;
    socklen_t size = sizeof bad;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &bad, &size);
    if (bad != 0) return broken(strerror(bad));
  }
  int one = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return {};
}

Result<std::unique_ptr<Connection>> Connection::open(const Place& place,
                                                     const call_options& options) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int bad = ::getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &list); bad != 0)
    return broken(
        fmt::format("cannot find {}:{}: {}", place.host, place.port, ::gai_strerror(bad)));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, ::freeaddrinfo);
  Error last{Code::unavailable, "CONNECTION", "no address"};
  for (addrinfo* at = list; at; at = at->ai_next) {
    std::unique_ptr<Connection> out(new Connection(-1));
    auto connected = out->connect(*at, options);
    if (connected && place.trust) {
      TRY_OK(out->handshake(place, options));
    }
    if (connected) return out;
    last = std::move(connected.error());
  }
  if (last.reason == "deadline_exceeded") return fail(std::move(last));
  return broken(fmt::format("nobody answers at {}:{} ({}): is the server running?", place.host,
                            place.port, last.message));
}

Result<void> Connection::handshake(const Place& place, const call_options& options) {
  tls_ = place.trust->connect(place.host);
  std::string early, out;
  bool good = tls_->receive({}, early, out);
  while (true) {
    TRY_OK(send_all(out, options));
    if (good && tls_->ready()) return {};
    if (!good)
      return broken(
          fmt::format("the TLS handshake with {}:{} failed: is its certificate trusted, and is it "
                      "for this name?",
                      place.host, place.port));
    TRY_OK(ready(POLLIN, options));
    char part[16384];
    ssize_t n = ::recv(fd_, part, sizeof part, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN))
      return broken(
          fmt::format("{}:{} closed the connection during the TLS handshake: does it speak TLS?",
                      place.host, place.port));
    out.clear();
    good = tls_->receive({part, static_cast<size_t>(std::max<ssize_t>(n, 0))}, early, out);
  }
}

Result<void> Connection::send_all(std::string_view bytes, const call_options& options) {
  while (!bytes.empty()) {
    ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) {
      TRY_OK(ready(POLLOUT, options));
      continue;
    }
    if (n <= 0) return broken("the server closed the connection");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<void> Connection::write(std::string_view bytes, const call_options& options) {
  if (!tls_) return send_all(bytes, options);
  std::string cipher;
  if (!tls_->send(bytes, cipher)) return broken("the TLS session is broken");
  return send_all(cipher, options);
}

bool Connection::unused() const {
  pollfd p{fd_, POLLIN, 0};
  return ::poll(&p, 1, 0) == 0;
}

Result<void> Connection::more(std::string& into, const call_options& options) {
  size_t before = into.size();
  while (into.size() == before) {
    TRY_OK(ready(POLLIN, options));
    char part[16384];
    ssize_t n = ::recv(fd_, part, sizeof part, 0);
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) return broken("the server closed the connection");
    std::string_view got(part, static_cast<size_t>(n));
    if (!tls_) {
      into += got;
      return {};
    }
    std::string out;
    bool good = tls_->receive(got, into, out);
    TRY_OK(send_all(out, options));
    if (!good && into.size() == before) return broken("the server closed the connection");
  }
  return {};
}

}  // namespace pawl::lifecycle

#include "net/peer/pipe.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "net/peer/link.h"
#include "net/peer/peer_tls.h"
#include "wire/message.h"

namespace pawl::net {

namespace {

constexpr std::string_view kMagic = "PAWLPEER1";
constexpr size_t kNonceBytes = 32, kMacBytes = 32;
constexpr size_t kMaxHello = 1024;
constexpr int kHandshakeMs = 5000;

using Clock = std::chrono::steady_clock;

std::unexpected<Error> unreachable(const std::string& what) {
  return fail(Code::unavailable, kPeerUnreachable, what);
}
std::unexpected<Error> refused(const std::string& what) {
  return fail(Code::denied, "PEER_REFUSED", what);
}

// Reads whole messages of the handshake. What came behind the last one stays for the link.
class Hello {
 public:
  explicit Hello(Pipe& pipe)
      : pipe_(pipe), until_(Clock::now() + std::chrono::milliseconds(kHandshakeMs)) {}
  bool send(BytesView message) {
    Bytes out;
    Writer(out).fixed32(static_cast<uint32_t>(message.size()));
    return pipe_.write(out.append(message));
  }
  Result<Bytes> receive() {
    while (true) {
      if (buffer_.size() >= 4) {
        const size_t size = Reader(buffer_).fixed32();
        if (size > kMaxHello) return refused("the other side is not a node of a cluster");
        if (buffer_.size() >= 4 + size) {
          Bytes out = buffer_.substr(4, size);
          buffer_.erase(0, 4 + size);
          return out;
        }
      }
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until_ - Clock::now());
      if (left.count() <= 0) return unreachable("the other node did not answer in time");
      if (!pipe_.read(buffer_, static_cast<int>(left.count())))
        return unreachable("the other node closed the connection");
    }
  }
  bool is_drained() const { return buffer_.empty(); }

 private:
  Pipe& pipe_;
  const Clock::time_point until_;
  Bytes buffer_;
};

struct Side {
  std::string node;
  Bytes nonce;
};

Bytes mac(const Bytes& secret, std::string_view role, const Side& own, const Side& other) {
  Bytes text;
  Writer w(text);
  for (BytesView part : {BytesView(kMagic), BytesView(role), BytesView(own.node),
                         BytesView(own.nonce), BytesView(other.node), BytesView(other.nonce)})
    w.str(part);
  Bytes out(kMacBytes, '\0');
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(out.data()), &size);
  return out;
}

// Each side sends its name and a nonce, then a MAC over both names and nonces. The roles keep a MAC
// from being sent back to its maker. The side that connected proves itself first, so that a
// stranger who connects gets nothing to try secrets on.
Result<void> prove(Pipe& pipe, const PeerIdentity& identity, bool connected) {
  Hello hello(pipe);
  Side own{identity.node, Bytes(kNonceBytes, '\0')}, other;
  RAND_bytes(reinterpret_cast<unsigned char*>(own.nonce.data()), kNonceBytes);
  Bytes first;
  Writer w(first);
  w.str(kMagic);
  w.str(own.node);
  w.str(own.nonce);
  if (!hello.send(first)) return unreachable("the other node closed the connection");
  TRY(Bytes theirs, hello.receive());
  Reader r(theirs);
  const bool speaks = r.str() == kMagic;
  other.node = r.str();
  other.nonce = r.str();
  if (!speaks || !r.done() || other.node.empty() || other.nonce.size() != kNonceBytes)
    return refused("the other side is not a node of a cluster of this version");
  const std::string_view own_role = connected ? "connects" : "accepts";
  const std::string_view other_role = connected ? "accepts" : "connects";
  if (connected && !hello.send(mac(identity.secret, own_role, own, other)))
    return unreachable("the other node closed the connection");
  TRY(Bytes proof, hello.receive());
  const Bytes right = mac(identity.secret, other_role, other, own);
  if (proof.size() != right.size() || CRYPTO_memcmp(proof.data(), right.data(), right.size()) != 0)
    return refused("node '" + other.node + "' does not know the secret of this cluster");
  if (!connected && !hello.send(mac(identity.secret, own_role, own, other)))
    return unreachable("the other node closed the connection");
  if (!hello.is_drained()) return refused("the other side does not keep to the protocol");
  pipe.set_peer(std::move(other.node));
  return {};
}

void set_up(int socket) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

bool wait_for(int socket, short events, int milliseconds) {
  pollfd one{socket, events, 0};
  return poll(&one, 1, milliseconds) > 0;
}

Result<int> connect_socket(const std::string& address) {
  const wire::HostPort target = wire::host_and_port(address, "");
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found) != 0)
    return unreachable("cannot find the address " + address);
  int socket = -1;
  for (addrinfo* one = found; one && socket < 0; one = one->ai_next) {
    socket = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) continue;
    int problem = 0;
    socklen_t size = sizeof problem;
    const bool begun =
        ::connect(socket, one->ai_addr, one->ai_addrlen) == 0 || errno == EINPROGRESS;
    if (begun && wait_for(socket, POLLOUT, kHandshakeMs) &&
        getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 && problem == 0)
      break;
    ::close(socket);
    socket = -1;
  }
  freeaddrinfo(found);
  if (socket < 0) return unreachable("nobody answers at " + address);
  return socket;
}

}  // namespace

Pipe::~Pipe() { ::close(socket_); }

void Pipe::close() { ::shutdown(socket_, SHUT_RDWR); }

// What arrives with the end of the handshake is kept for read().
bool Pipe::begin_tls(int milliseconds) {
  if (!tls_) return true;
  const auto until = Clock::now() + std::chrono::milliseconds(milliseconds);
  {
    std::lock_guard lock(tls_mutex_);
    if (!tls_->receive({}, early_, cipher_)) return false;
  }
  while (true) {
    if (!write({})) return false;
    {
      std::lock_guard lock(tls_mutex_);
      if (tls_->ready()) return true;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    Bytes plain;
    if (left.count() <= 0 || !read(plain, static_cast<int>(left.count()))) return false;
    early_.append(plain);
  }
}

bool Pipe::read(Bytes& into, int milliseconds) {
  constexpr size_t kPart = 64 * 1024;
  if (!early_.empty()) {
    into.append(std::exchange(early_, {}));
    return true;
  }
  if (!wait_for(socket_, POLLIN, milliseconds)) return true;
  Bytes part(kPart, '\0');
  const ssize_t got = ::recv(socket_, part.data(), part.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  part.resize(static_cast<size_t>(got));
  if (!tls_) {
    into.append(part);
    return true;
  }
  std::lock_guard lock(tls_mutex_);
  return tls_->receive(part, into, cipher_);
}

bool Pipe::wants_to_write() {
  if (!tls_) return false;
  std::lock_guard lock(tls_mutex_);
  return !cipher_.empty();
}

bool Pipe::encrypt(BytesView plain, Bytes& out) {
  std::lock_guard lock(tls_mutex_);
  const bool good = plain.empty() || tls_->send(plain, cipher_);
  out = std::exchange(cipher_, {});
  return good;
}

bool Pipe::write(BytesView bytes) {
  if (!tls_) return write_raw(bytes);
  Bytes out;
  return encrypt(bytes, out) && write_raw(out);
}

size_t Pipe::write_now(BytesView bytes) {
  if (tls_) return 0;
  const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent > 0 ? static_cast<size_t>(sent) : 0;
}

// A node that takes nothing for this long is as good as gone.
bool Pipe::write_raw(BytesView bytes) {
  constexpr int kPatienceMs = 10'000;
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent == 0 || errno != EAGAIN || !wait_for(socket_, POLLOUT, kPatienceMs)) return false;
  }
  return true;
}

Result<std::unique_ptr<Pipe>> connect_to(const std::string& address, const PeerIdentity& identity,
                                         const PeerTls* tls) {
  TRY(int socket, connect_socket(address));
  set_up(socket);
  auto pipe = std::make_unique<Pipe>(socket, tls ? tls->connect() : nullptr);
  if (!pipe->begin_tls(kHandshakeMs)) return unreachable("no TLS connection to " + address);
  TRY_OK(prove(*pipe, identity, true));
  return pipe;
}

Result<std::unique_ptr<Pipe>> accept_from(int socket, const PeerIdentity& identity,
                                          const PeerTls* tls) {
  set_up(socket);
  auto pipe = std::make_unique<Pipe>(socket, tls ? tls->accept() : nullptr);
  if (!pipe->begin_tls(kHandshakeMs)) return refused("the TLS handshake failed");
  TRY_OK(prove(*pipe, identity, false));
  return pipe;
}

}  // namespace pawl::net

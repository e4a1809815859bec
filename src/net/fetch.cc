#include "net/fetch.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>

#include "base/limits.h"
#include "net/peer_name.h"
#include "wire/answer.h"

namespace pawl::server {

namespace {

struct Place {
  bool tls;
  std::string host, port, target;
};

Error failed(const std::string& url, std::string_view why) {
  return {
      Code::unavailable, "FETCH_FAILED", fmt::format("{}: {}", url.substr(0, 200), why), {}, true};
}

Error timed_out(const std::string& url) {
  return {Code::unavailable,
          "TIMEOUT",
          fmt::format("{}: no answer in time", url.substr(0, 200)),
          {},
          true};
}

Result<Place> take_apart(const std::string& url) {
  Place p;
  std::string_view rest = url;
  if (rest.starts_with("https://"))
    p.tls = true, rest.remove_prefix(8);
  else if (rest.starts_with("http://"))
    p.tls = false, rest.remove_prefix(7);
  else
    return fail(Code::invalid, "BAD_URL",
                fmt::format("'{}' is neither http:// nor https://", url.substr(0, 200)));
  rest = rest.substr(0, rest.find('#'));  // what follows is not for the server
  size_t slash = rest.find_first_of("/?");
  std::string_view authority = rest.substr(0, slash);
  p.target = slash == std::string_view::npos ? "/" : std::string(rest.substr(slash));
  if (p.target[0] == '?') p.target.insert(0, "/");
  if (authority.find('@') != std::string_view::npos)
    return fail(Code::invalid, "BAD_URL", "a url may not hold a user or password");
  for (char c : url)
    if (static_cast<unsigned char>(c) <= 0x20)
      return fail(Code::invalid, "BAD_URL", "a url may not hold spaces or control characters");
  auto [host, port] = wire::host_and_port(authority, p.tls ? "443" : "80");
  p.host = std::move(host), p.port = std::move(port);
  if (p.host.empty()) return fail(Code::invalid, "BAD_URL", "the url names no host");
  return p;
}

bool is_private(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    uint32_t a = ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    auto in = [a](uint32_t net, int bits) { return a >> (32 - bits) == net >> (32 - bits); };
    return in(0x7f000000, 8) || in(0x0a000000, 8) || in(0xac100000, 12) || in(0xc0a80000, 16) ||
           in(0xa9fe0000, 16) || in(0, 8) || in(0x64400000, 10) || in(0xe0000000, 3);
  }
  const in6_addr& a = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  // Forms that stand for an IPv4 address: mapped, compatible, NAT64 and 6to4.
  static constexpr uint8_t kNat64[12] = {0x00, 0x64, 0xff, 0x9b};
  const bool ends_in_four = IN6_IS_ADDR_V4MAPPED(&a) || IN6_IS_ADDR_V4COMPAT(&a) ||
                            std::memcmp(a.s6_addr, kNat64, sizeof kNat64) == 0;
  if (ends_in_four || (a.s6_addr[0] == 0x20 && a.s6_addr[1] == 0x02)) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, a.s6_addr + (ends_in_four ? 12 : 2), 4);
    return is_private(reinterpret_cast<const sockaddr*>(&four));
  }
  return IN6_IS_ADDR_LOOPBACK(&a) || IN6_IS_ADDR_UNSPECIFIED(&a) || IN6_IS_ADDR_LINKLOCAL(&a) ||
         IN6_IS_ADDR_SITELOCAL(&a) || (a.s6_addr[0] & 0xfe) == 0xfc || a.s6_addr[0] == 0xff;
}

// A socket, with or without TLS over it.
class Line {
 public:
  ~Line() {
    if (ssl_) SSL_free(ssl_);
    if (ctx_) SSL_CTX_free(ctx_);
    if (fd_ >= 0) close(fd_);
  }

  // Connects to the address that was checked, not to whatever the name means a moment later. The
  // time is for everything from here to the end of the answer: a peer that drips holds no thread.
  Result<void> open(const Fetch& f, const Place& p, int timeout_seconds) {
    addrinfo hints{}, *list = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (int err = getaddrinfo(p.host.c_str(), p.port.c_str(), &hints, &list))
      return fail(failed(f.url, gai_strerror(err)));
    std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, freeaddrinfo);
    std::string why = "no address";
    until_ = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds);
    for (addrinfo* a = list; a; a = a->ai_next) {
      if (!f.allow_private && is_private(a->ai_addr)) {
        why = "the address is loopback or private, which is not allowed for it";
        continue;
      }
      TRY(int error, connect(f, *a));
      if (error == 0) return p.tls ? secure(f, p) : Result<void>{};
      why = strerror(error);
    }
    return fail(failed(f.url, why));
  }

  Result<void> write(const Fetch& f, std::string_view text) {
    while (!text.empty()) {
      TRY(ssize_t n, ssl_ ? by_tls(f,
                                   [&] {
                                     return SSL_write(
                                         ssl_, text.data(),
                                         static_cast<int>(std::min<size_t>(text.size(), 1 << 20)));
                                   })
                          : plainly(f, POLLOUT, [&] {
                              return send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
                            }));
      if (n <= 0) return fail(failed(f.url, "the peer took no more of the request"));
      text.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  }

  // More bytes onto the buffer; false at the end.
  Result<bool> more(const Fetch& f, std::string& buffer) {
    char piece[65536];
    TRY(ssize_t n, ssl_ ? by_tls(f, [&] { return SSL_read(ssl_, piece, sizeof piece); })
                        : plainly(f, POLLIN, [&] { return recv(fd_, piece, sizeof piece, 0); }));
    if (n < 0) return fail(failed(f.url, ssl_ ? "the TLS connection broke" : strerror(errno)));
    buffer.append(piece, static_cast<size_t>(n));
    return n > 0;
  }

 private:
  // 0, or why not.
  Result<int> connect(const Fetch& f, const addrinfo& to) {
    if (fd_ >= 0) close(fd_);
    fd_ = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) return errno;
    if (::connect(fd_, to.ai_addr, to.ai_addrlen) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    TRY_OK(wait(f, POLLOUT));
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }

  Result<void> secure(const Fetch& f, const Place& p) {
    ctx_ = SSL_CTX_new(TLS_client_method());
    if (!ctx_) return fail(failed(f.url, "TLS is not available"));
    SSL_CTX_set_min_proto_version(ctx_, TLS1_2_VERSION);
    SSL_CTX_set_default_verify_paths(ctx_);
    SSL_CTX_set_verify(ctx_, SSL_VERIFY_PEER, nullptr);
    ssl_ = SSL_new(ctx_);
    SSL_set_fd(ssl_, fd_);
    wire::expect_peer(ssl_, p.host);
    TRY(ssize_t done, by_tls(f, [&] { return SSL_connect(ssl_); }));
    if (done != 1)
      return fail(failed(f.url, "the TLS handshake failed, or the certificate is not trusted"));
    return {};
  }

  // Until the socket is ready for it.
  Result<void> wait(const Fetch& f, short events) {
    while (true) {
      auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now())
              .count();
      if (left <= 0) return fail(timed_out(f.url));
      pollfd p{fd_, events, 0};
      int n = poll(&p, 1, static_cast<int>(std::min<long>(left, 60'000)));
      if (n > 0) return {};
      if (n < 0 && errno != EINTR) return fail(failed(f.url, strerror(errno)));
    }
  }

  // What the call returns when it need not wait any more: bytes, 0 at the end, -1 and errno.
  template <class Call>
  Result<ssize_t> plainly(const Fetch& f, short events, const Call& call) {
    while (true) {
      TRY_OK(wait(f, events));
      ssize_t n = call();
      if (n >= 0 || (errno != EAGAIN && errno != EINTR)) return n;
    }
  }
  // The same by TLS, where either may want the other; an end that the peer did not say is none.
  template <class Call>
  Result<ssize_t> by_tls(const Fetch& f, const Call& call) {
    while (std::chrono::steady_clock::now() < until_) {
      ERR_clear_error();
      int n = call();
      if (n > 0) return n;
      switch (SSL_get_error(ssl_, n)) {
        case SSL_ERROR_WANT_READ: TRY_OK(wait(f, POLLIN)); break;
        case SSL_ERROR_WANT_WRITE: TRY_OK(wait(f, POLLOUT)); break;
        case SSL_ERROR_ZERO_RETURN: return 0;
        default: return -1;
      }
    }
    return fail(timed_out(f.url));
  }

  int fd_ = -1;
  std::chrono::steady_clock::time_point until_;
  SSL_CTX* ctx_ = nullptr;
  SSL* ssl_ = nullptr;
};

}  // namespace

Result<wire::Response> fetch_now(const Fetch& f, int timeout_seconds) {
  TRY(Place place, take_apart(f.url));
  Line line;
  TRY_OK(line.open(f, place, timeout_seconds));
  bool usual = place.port == (place.tls ? "443" : "80");
  const std::string host =
      place.host.find(':') == std::string::npos ? place.host : "[" + place.host + "]";
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}{}\r\nConnection: close\r\nContent-Length: {}\r\n",
                  f.method, place.target, host, usual ? "" : ":" + place.port, f.body.size());
  for (const auto& [name, value] : f.headers) {
    if ((name + value).find_first_of("\r\n") != std::string::npos)
      return fail(Code::invalid, "BAD_HEADER", "a header may not hold a line break");
    text += name + ": " + value + "\r\n";
  }
  TRY_OK(line.write(f, text + "\r\n"));
  TRY_OK(line.write(f, f.body));
  wire::AnswerReader answer([&](Bytes& onto) { return line.more(f, onto); },
                            [&](const std::string& why) { return failed(f.url, why); },
                            limits::kBodyBytes, wire::AnswerReader::End::or_connection);
  TRY(wire::AnswerHead head, answer.head());
  TRY(Bytes body, answer.body(head, f.method));
  return wire::Response{
      .status = head.status, .headers = std::move(head.headers), .body = std::move(body)};
}

Fetcher::Fetcher(size_t threads, int timeout_seconds) : timeout_seconds_(timeout_seconds) {
  for (size_t i = 0; i < threads; ++i)
    threads_.emplace_back([this] { loop(); });
}

Fetcher::~Fetcher() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    queue_.clear();
  }
  wake_.notify_all();
  for (auto& t : threads_)
    t.join();
}

void Fetcher::send(Fetch fetch, Done done) {
  {
    std::lock_guard lock(mutex_);
    queue_.emplace_back(std::move(fetch), std::move(done));
  }
  wake_.notify_one();
}

void Fetcher::loop() {
  while (true) {
    std::pair<Fetch, Done> next;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (ending_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    next.second(fetch_now(next.first, timeout_seconds_));
  }
}

}  // namespace pawl::server

#include "client/http.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "client/line.h"
#include "wire/answer.h"

namespace pawl::client {

namespace {

// Idle connections that are kept; more are closed.
constexpr size_t kMaxIdle = 64;

constexpr size_t kAnswerBytes = 64u << 20;
constexpr int kMaxWaitS = 60;

int seconds_of(std::string_view text) {
  int n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return std::clamp(n, 0, kMaxWaitS);
}

}  // namespace

Http::Http(std::string server, int timeout_ms)
    : server_(std::move(server)), timeout_ms_(timeout_ms) {
  secure_ = server_.starts_with("https://");
  for (std::string_view scheme : {"http://", "https://"})
    if (server_.starts_with(scheme)) server_.erase(0, scheme.size());
  while (server_.ends_with('/'))
    server_.pop_back();
  auto [host, port] = wire::host_and_port(server_, secure_ ? "443" : "8080");
  host_ = std::move(host), port_ = std::move(port);
  if (host_.empty()) host_ = "127.0.0.1";
}

Http::~Http() { forget(); }

Error Http::lost(std::string_view why) const {
  return {Code::unavailable,
          "UNREACHABLE",
          fmt::format("no answer from {} ({}): is `pawl serve` running there?", server_, why),
          {},
          true};
}

Result<std::unique_ptr<Line>> Http::connect() {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int err = getaddrinfo(host_.c_str(), port_.c_str(), &hints, &list))
    return fail(lost(gai_strerror(err)));
  std::string why = "no address";
  int fd = -1;
  for (addrinfo* a = list; a && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd >= 0 && ::connect(fd, a->ai_addr, a->ai_addrlen) == 0) break;
    why = strerror(errno);
    if (fd >= 0) close(fd);
    fd = -1;
  }
  freeaddrinfo(list);
  if (fd < 0) return fail(lost(why));
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  timeval limit{timeout_ms_ / 1000, timeout_ms_ % 1000 * 1000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  auto line = std::make_unique<Line>(fd);
  if (!secure_) return line;
  std::string refused = line->secure(host_);
  // Not a matter of time: it is said at once.
  if (!refused.empty())
    return fail(Code::denied, "BAD_CERTIFICATE",
                fmt::format("no TLS with {}: {}. Name its certificate authority with SSL_CERT_FILE",
                            server_, refused));
  return line;
}

// What is left of the old connections is of no use once one of them broke: a restart broke them
// all.
void Http::forget() {
  std::lock_guard lock(mutex_);
  idle_.clear();
}

Result<HttpReply> Http::send(std::string_view method, std::string_view path, std::string_view body,
                             std::string_view headers) {
  std::unique_ptr<Line> line;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      line = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!line) {
    TRY(line, connect());
  }
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{}\r\n{}",
                                method, path, server_, body.size(), headers, body);
  auto reply = exchange(std::move(line), method, out);
  if (!reply) forget();
  return reply;
}

Result<HttpReply> Http::exchange(std::unique_ptr<Line> line, std::string_view method,
                                 std::string_view request) {
  if (!line->write(request)) return fail(lost(strerror(errno)));
  auto more = [&](Bytes& onto) -> Result<bool> {
    long n = line->more(onto);
    if (n < 0) return fail(lost(errno ? strerror(errno) : "the connection broke"));
    return n > 0;
  };
  wire::AnswerReader answer(
      more, [&](const std::string& why) { return lost(why); }, kAnswerBytes);
  TRY(wire::AnswerHead head, answer.head());
  TRY(Bytes body, answer.body(head, method));
  HttpReply reply{.status = head.status,
                  .body = std::move(body),
                  .retry_after_s = seconds_of(head.header("Retry-After"))};
  if (head.closes || !answer.nothing_left()) return reply;
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(line));
  return reply;
}

static uint64_t chance() {
  uint64_t n = 0;
  CHECK(getrandom(&n, sizeof n, 0) == sizeof n);
  return n;
}

std::string fresh_key() { return fmt::format("{:016x}{:016x}", chance(), chance()); }

int jittered(int ms) { return ms / 2 + static_cast<int>(chance() % static_cast<uint64_t>(ms + 1)); }

}  // namespace pawl::client

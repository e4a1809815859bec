#include "client/http.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/limits.h"

namespace pawl::client {

namespace {

// Idle connections that are kept; more are closed.
constexpr size_t kMostIdle = 64;
constexpr size_t kHeadBytes = 64u << 10;
constexpr size_t kAnswerBytes = 64u << 20;

bool same_word(std::string_view a, std::string_view b) { return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0; }

// One connection while a request is on it: closed at the end unless it is kept.
class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  ~Line() {
    if (fd_ >= 0) close(fd_);
  }
  int keep() { return std::exchange(fd_, -1); }

  bool write(std::string_view out) {
    while (!out.empty()) {
      ssize_t n = ::send(fd_, out.data(), out.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      out.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Everything up to the next end of line, without it.
  std::optional<std::string> line() {
    size_t end;
    while ((end = in_.find("\r\n")) == std::string::npos)
      if (in_.size() > kHeadBytes || !fill()) return std::nullopt;
    std::string out = in_.substr(0, end);
    in_.erase(0, end + 2);
    return out;
  }
  bool take(size_t n, std::string& to) {
    if (n > kAnswerBytes || to.size() + n > kAnswerBytes) return errno = EMSGSIZE, false;
    while (in_.size() < n)
      if (!fill()) return false;
    to.append(in_, 0, n);
    in_.erase(0, n);
    return true;
  }
  bool nothing_left() const { return in_.empty(); }

 private:
  bool fill() {
    char piece[16384];
    ssize_t n;
    do n = recv(fd_, piece, sizeof piece, 0);
    while (n < 0 && errno == EINTR);
    if (n == 0) errno = ECONNRESET;
    if (n <= 0) return false;
    in_.append(piece, static_cast<size_t>(n));
    return true;
  }
  int fd_;
  std::string in_;
};

std::optional<size_t> number(std::string_view text, int base) {
  size_t n = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n, base);
  if (failed != std::errc() || end == text.data()) return std::nullopt;
  return n;
}

struct Head {
  int status = 0;
  size_t length = 0;
  bool chunked = false, closes = false;
  int retry_after_s = 0;
};

std::optional<Head> read_head(Line& in) {
  Head head;
  auto first = in.line();
  if (!first || first->size() < 12 || !first->starts_with("HTTP/1.")) return std::nullopt;
  head.status = std::atoi(first->c_str() + 9);
  while (true) {
    auto line = in.line();
    if (!line) return std::nullopt;
    if (line->empty()) return head;
    size_t colon = line->find(':');
    if (colon == std::string::npos) return std::nullopt;
    std::string_view name = std::string_view(*line).substr(0, colon), value = std::string_view(*line).substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    if (same_word(name, "Content-Length")) head.length = number(value, 10).value_or(0);
    if (same_word(name, "Transfer-Encoding")) head.chunked = same_word(value, "chunked");
    if (same_word(name, "Connection")) head.closes = same_word(value, "close");
    if (same_word(name, "Retry-After")) head.retry_after_s = static_cast<int>(std::min<size_t>(number(value, 10).value_or(0), 60));
  }
}

bool read_chunks(Line& in, std::string& to) {
  while (true) {
    auto line = in.line();
    if (!line) return false;
    auto size = number(*line, 16);
    if (!size) return false;
    if (*size && !in.take(*size, to)) return false;
    if (!in.line()) return false;
    if (*size == 0) return true;
  }
}

}  // namespace

Http::Http(std::string server, std::string token, int timeout_ms) : server_(std::move(server)), token_(std::move(token)), timeout_ms_(timeout_ms) {
  if (server_.starts_with("http://")) server_.erase(0, 7);
  while (server_.ends_with('/')) server_.pop_back();
  size_t colon = server_.rfind(':');
  host_ = server_.substr(0, colon);
  port_ = colon == std::string::npos ? "8080" : server_.substr(colon + 1);
  if (host_.starts_with('[') && host_.ends_with(']')) host_ = host_.substr(1, host_.size() - 2);
  if (host_.empty()) host_ = "127.0.0.1";
}

Http::~Http() { forget(); }

Error Http::lost(std::string_view why) const {
  return {Code::unavailable, "UNREACHABLE", fmt::format("no answer from {} ({}): is `pawl serve` running there?", server_, why), {}, true};
}

Result<int> Http::connect() const {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int err = getaddrinfo(host_.c_str(), port_.c_str(), &hints, &list)) return fail(lost(gai_strerror(err)));
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
  return fd;
}

// What is left of the old connections is of no use once one of them broke: a restart broke them all.
void Http::forget() {
  std::lock_guard lock(mutex_);
  for (int fd : idle_) close(fd);
  idle_.clear();
}

Result<HttpReply> Http::send(std::string_view method, std::string_view path, std::string_view body, std::string_view key) {
  int fd = -1;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      fd = idle_.back();
      idle_.pop_back();
    }
  }
  if (fd < 0) {
    TRY(fd, connect());
  }
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", method, path, server_, body.size());
  if (!token_.empty()) out += "Authorization: Bearer " + token_ + "\r\n";
  if (!key.empty()) out.append("Idempotency-Key: ").append(key).append("\r\n");
  out.append("\r\n").append(body);
  auto reply = exchange(fd, out);
  if (!reply) forget();
  return reply;
}

Result<HttpReply> Http::exchange(int fd, std::string_view request) {
  Line line(fd);
  if (!line.write(request)) return fail(lost(strerror(errno)));
  errno = 0;
  auto head = read_head(line);
  if (!head) return fail(lost(errno ? strerror(errno) : "not an HTTP answer"));
  HttpReply reply{.status = head->status, .body = {}, .retry_after_s = head->retry_after_s};
  bool has_body = head->status != 204 && head->status != 304;
  if (has_body && !(head->chunked ? read_chunks(line, reply.body) : line.take(head->length, reply.body))) return fail(lost("the answer was cut off"));
  if (head->closes || !line.nothing_left()) return reply;
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(line.keep());
  return reply;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (unsigned char c : text) {
    if (isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~') out += static_cast<char>(c);
    else out += fmt::format("%{:02X}", c);
  }
  return out;
}

static uint64_t chance() {
  uint64_t n = 0;
  CHECK(getrandom(&n, sizeof n, 0) == sizeof n);
  return n;
}

std::string fresh_key() { return fmt::format("{:016x}{:016x}", chance(), chance()); }

int jittered(int ms) { return ms / 2 + static_cast<int>(chance() % static_cast<uint64_t>(ms + 1)); }

}  // namespace pawl::client

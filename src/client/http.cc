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

#include "client/line.h"

namespace pawl::client {

namespace {

// Idle connections that are kept; more are closed.
constexpr size_t kMostIdle = 64;

bool same_word(std::string_view a, std::string_view b) { return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0; }

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

Http::Http(std::string server, int timeout_ms) : server_(std::move(server)), timeout_ms_(timeout_ms) {
  secure_ = server_.starts_with("https://");
  for (std::string_view scheme : {"http://", "https://"})
    if (server_.starts_with(scheme)) server_.erase(0, scheme.size());
  while (server_.ends_with('/')) server_.pop_back();
  size_t colon = server_.rfind(':');
  host_ = server_.substr(0, colon);
  port_ = colon == std::string::npos ? (secure_ ? "443" : "8080") : server_.substr(colon + 1);
  if (host_.starts_with('[') && host_.ends_with(']')) host_ = host_.substr(1, host_.size() - 2);
  if (host_.empty()) host_ = "127.0.0.1";
}

Http::~Http() { forget(); }

Error Http::lost(std::string_view why) const {
  return {Code::unavailable, "UNREACHABLE", fmt::format("no answer from {} ({}): is `pawl serve` running there?", server_, why), {}, true};
}

Result<std::unique_ptr<Line>> Http::connect() {
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
  auto line = std::make_unique<Line>(fd);
  if (!secure_) return line;
  std::string refused = line->secure(host_);
  // Not a matter of time: it is said at once.
  if (!refused.empty()) return fail(Code::denied, "BAD_CERTIFICATE", fmt::format("no TLS with {}: {}. Name its certificate authority with SSL_CERT_FILE", server_, refused));
  return line;
}

// What is left of the old connections is of no use once one of them broke: a restart broke them all.
void Http::forget() {
  std::lock_guard lock(mutex_);
  idle_.clear();
}

Result<HttpReply> Http::send(std::string_view method, std::string_view path, std::string_view body, std::string_view headers) {
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
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{}\r\n{}", method, path, server_, body.size(), headers, body);
  auto reply = exchange(std::move(line), out);
  if (!reply) forget();
  return reply;
}

Result<HttpReply> Http::exchange(std::unique_ptr<Line> line, std::string_view request) {
  if (!line->write(request)) return fail(lost(strerror(errno)));
  errno = 0;
  auto head = read_head(*line);
  if (!head) return fail(lost(errno ? strerror(errno) : "not an HTTP answer"));
  HttpReply reply{.status = head->status, .body = {}, .retry_after_s = head->retry_after_s};
  bool has_body = head->status != 204 && head->status != 304;
  if (has_body && !(head->chunked ? read_chunks(*line, reply.body) : line->take(head->length, reply.body))) return fail(lost("the answer was cut off"));
  if (head->closes || !line->nothing_left()) return reply;
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(line));
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

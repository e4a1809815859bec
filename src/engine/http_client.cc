#include "engine/http_client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <charconv>

#include "wire/message.h"

namespace pawl::lifecycle {

namespace {

constexpr size_t kHeadBytes = 64 * 1024;
constexpr size_t kIdleConnections = 64;
constexpr int kPollMs = 100;

std::unexpected<Error> broken(std::string text) { return fail(Code::unavailable, "CONNECTION", std::move(text)); }

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Bytes of one answer as they come.
class Incoming {
 public:
  explicit Incoming(int fd) : fd_(fd) {}

  // False: the peer has gone, or the stop was asked.
  bool more(std::stop_token stop = {}) {
    while (stop.stop_possible()) {
      pollfd p{fd_, POLLIN, 0};
      if (stop.stop_requested()) return false;
      if (::poll(&p, 1, kPollMs) > 0) break;
    }
    char part[16384];
    ssize_t n = ::recv(fd_, part, sizeof part, 0);
    if (n <= 0) return false;
    bytes.append(part, static_cast<size_t>(n));
    return true;
  }
  std::string bytes;

 private:
  int fd_;
};

Result<HttpAnswer> read_head(Incoming& in) {
  size_t end;
  while ((end = in.bytes.find("\r\n\r\n")) == std::string::npos) {
    if (in.bytes.size() > kHeadBytes) return broken("the server's answer has too long a head");
    if (!in.more()) return broken("the server closed the connection");
  }
  HttpAnswer out;
  std::string_view head(in.bytes.data(), end);
  size_t line_end = std::min(head.find("\r\n"), head.size());
  std::string_view first = head.substr(0, line_end);
  if (first.size() < 12 || !first.starts_with("HTTP/1.")) return broken("the peer does not speak HTTP/1.1");
  std::from_chars(first.data() + 9, first.data() + 12, out.status);
  while (line_end < head.size()) {
    head.remove_prefix(line_end + 2);
    line_end = std::min(head.find("\r\n"), head.size());
    std::string_view line = head.substr(0, line_end);
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view text = line.substr(colon + 1);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    out.headers.emplace_back(line.substr(0, colon), text);
  }
  in.bytes.erase(0, end + 4);
  return out;
}

// Hands out the pieces of a chunked body until it ends. An error when the peer breaks off.
Result<void> read_chunks(Incoming& in, std::stop_token stop, const std::function<bool(std::string_view)>& piece) {
  while (true) {
    size_t line;
    while ((line = in.bytes.find("\r\n")) == std::string::npos)
      if (!in.more(stop)) return broken("the stream ended");
    size_t size = 0;
    std::from_chars(in.bytes.data(), in.bytes.data() + line, size, 16);
    while (in.bytes.size() < line + 2 + size + 2)
      if (!in.more(stop)) return broken("the stream ended");
    bool go = size == 0 || piece(std::string_view(in.bytes).substr(line + 2, size));
    in.bytes.erase(0, line + 2 + size + 2);
    if (size == 0 || !go) return {};
  }
}

Result<void> read_body(Incoming& in, HttpAnswer& out) {
  if (wire::lists_token(out.header("Transfer-Encoding"), "chunked"))
    return read_chunks(in, {}, [&](std::string_view piece) { return out.body.append(piece), true; });
  size_t length = 0;
  std::string_view text = out.header("Content-Length");
  std::from_chars(text.data(), text.data() + text.size(), length);
  while (in.bytes.size() < length)
    if (!in.more()) return broken("the server closed the connection within an answer");
  out.body = in.bytes.substr(0, length);
  return {};
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  const std::string* found = wire::find_header(headers, name);
  return found ? std::string_view(*found) : std::string_view();
}

Result<HttpClient> HttpClient::make(std::string_view address, std::string token) {
  constexpr std::string_view scheme = "http://";
  if (!address.starts_with(scheme)) return fail(Code::invalid, "BAD_ADDRESS", fmt::format("'{}' must be http://host:port", address));
  address.remove_prefix(scheme.size());
  while (address.ends_with('/')) address.remove_suffix(1);
  size_t colon = address.rfind(':');
  std::string host(address.substr(0, colon)), port(colon == std::string_view::npos ? "80" : address.substr(colon + 1));
  return HttpClient(std::move(host), std::move(port), std::move(token));
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : host_(std::move(other.host_)), port_(std::move(other.port_)), token_(std::move(other.token_)), idle_(std::move(other.idle_)) {}

HttpClient::~HttpClient() {
  for (int fd : idle_) ::close(fd);
}

Result<int> HttpClient::dial() const {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int bad = ::getaddrinfo(host_.c_str(), port_.c_str(), &hints, &list); bad != 0)
    return broken(fmt::format("cannot find {}:{}: {}", host_, port_, ::gai_strerror(bad)));
  int fd = -1;
  for (addrinfo* at = list; at && fd < 0; at = at->ai_next) {
    fd = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd >= 0 && ::connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
      ::close(fd);
      fd = -1;
    }
  }
  ::freeaddrinfo(list);
  if (fd < 0) return broken(fmt::format("nobody answers at {}:{}: is the server running?", host_, port_));
  int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

Result<int> HttpClient::connection(bool& fresh) {
  {
    std::lock_guard lock(mutex_);
    fresh = idle_.empty();
    if (!fresh) {
      int fd = idle_.back();
      idle_.pop_back();
      return fd;
    }
  }
  return dial();
}

std::string HttpClient::head(const HttpAsk& ask) const {
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Length: {}\r\n", ask.method, ask.path, host_, port_, ask.body.size());
  if (!ask.body.empty()) out += "Content-Type: application/json\r\n";
  if (!token_.empty()) out += "Authorization: Bearer " + token_ + "\r\n";
  for (const auto& [name, text] : ask.headers) out += name + ": " + text + "\r\n";
  return out + "\r\n";
}

Result<HttpAnswer> HttpClient::send(const HttpAsk& ask) {
  std::string bytes = head(ask) + ask.body;
  while (true) {
    bool fresh = false;
    TRY(int fd, connection(fresh));
    Incoming in(fd);
    bool sent = write_all(fd, bytes);
    auto answer = sent ? read_head(in) : Result<HttpAnswer>(broken("the server closed the connection"));
    if (answer) {
      if (auto body = read_body(in, *answer); !body) answer = fail(std::move(body.error()));
    }
    if (!answer) {
      ::close(fd);
      // A kept connection may have been closed before our request was read: then nothing happened.
      if (!fresh && in.bytes.empty() && (ask.method == "GET" || !sent)) continue;
      return answer;
    }
    std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleConnections && !wire::lists_token(answer->header("Connection"), "close")) idle_.push_back(fd);
    else ::close(fd);
    return answer;
  }
}

Result<void> HttpClient::stream(const HttpAsk& ask, std::stop_token stop, const std::function<bool(std::string_view)>& piece) {
  TRY(int fd, dial());
  Incoming in(fd);
  Result<void> done = [&]() -> Result<void> {
    if (!write_all(fd, head(ask) + ask.body)) return broken("the server closed the connection");
    TRY(HttpAnswer answer, read_head(in));
    if (answer.status == 200) return read_chunks(in, stop, piece);
    TRY_OK(read_body(in, answer));
    return fail(Code::invalid, "STATUS", answer.body);
  }();
  ::close(fd);
  return done;
}

}  // namespace pawl::lifecycle

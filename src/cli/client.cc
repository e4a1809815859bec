#include "cli/client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "json/text.h"

namespace pawl::cli {

static Error unreachable(const std::string& host, const std::string& port, std::string_view why) {
  return {Code::unavailable, "UNREACHABLE", fmt::format("no answer from {}:{} ({}): is `pawl serve` running there? Name another with --server HOST:PORT", host, port, why), {}, true};
}

Client::Client(std::string server, std::string token) : token_(std::move(token)) {
  if (server.starts_with("http://")) server.erase(0, 7);
  while (server.ends_with('/')) server.pop_back();
  size_t colon = server.rfind(':');
  host_ = server.substr(0, colon);
  port_ = colon == std::string::npos ? "8080" : server.substr(colon + 1);
  if (host_.starts_with('[') && host_.ends_with(']')) host_ = host_.substr(1, host_.size() - 2);
  if (host_.empty()) host_ = "127.0.0.1";
}

Client::~Client() {
  if (fd_ >= 0) close(fd_);
}

Result<void> Client::connect() {
  if (fd_ >= 0) return {};
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int err = getaddrinfo(host_.c_str(), port_.c_str(), &hints, &list)) return fail(unreachable(host_, port_, gai_strerror(err)));
  std::string why = "no address";
  for (addrinfo* a = list; a && fd_ < 0; a = a->ai_next) {
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd >= 0 && ::connect(fd, a->ai_addr, a->ai_addrlen) == 0) fd_ = fd;
    else {
      why = strerror(errno);
      if (fd >= 0) close(fd);
    }
  }
  freeaddrinfo(list);
  if (fd_ < 0) return fail(unreachable(host_, port_, why));
  int yes = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  buffer_.clear();
  return {};
}

Result<void> Client::write_request(std::string_view method, std::string_view path, std::string_view body, const wire::Headers& headers) {
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Length: {}\r\n", method, path, host_, port_, body.size());
  if (!token_.empty()) out += "Authorization: Bearer " + token_ + "\r\n";
  bool typed = false;
  for (const auto& [name, value] : headers) {
    out += name + ": " + value + "\r\n";
    typed = typed || name == "Content-Type";
  }
  if (!body.empty() && !typed) out += "Content-Type: application/json\r\n";
  out += "\r\n";
  out += body;
  for (size_t sent = 0; sent < out.size();) {
    ssize_t n = ::send(fd_, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return fail(unreachable(host_, port_, strerror(errno)));
    sent += static_cast<size_t>(n);
  }
  return {};
}

Result<bool> Client::fill() {
  char piece[65536];
  ssize_t n = recv(fd_, piece, sizeof piece, 0);
  if (n < 0) return fail(unreachable(host_, port_, strerror(errno)));
  buffer_.append(piece, static_cast<size_t>(n));
  return n > 0;
}

Result<std::string> Client::read_line() {
  size_t end;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    TRY(bool more, fill());
    if (!more) return fail(unreachable(host_, port_, "the connection was closed"));
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

Result<wire::Response> Client::read_head() {
  wire::Response response;
  TRY(std::string status, read_line());
  if (status.size() < 12) return fail(unreachable(host_, port_, "not an HTTP answer"));
  response.status = std::atoi(status.c_str() + 9);
  while (true) {
    TRY(std::string line, read_line());
    if (line.empty()) return response;
    size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    size_t value = line.find_first_not_of(' ', colon + 1);
    response.headers.emplace_back(line.substr(0, colon), value == std::string::npos ? "" : line.substr(value));
  }
}

static std::string header(const wire::Response& r, std::string_view name) {
  for (const auto& [n, v] : r.headers)
    if (n.size() == name.size() && strncasecmp(n.data(), name.data(), n.size()) == 0) return v;
  return {};
}

Result<void> Client::read_body(wire::Response& response, const std::function<bool(std::string_view)>* visit) {
  auto take = [&](size_t n) -> Result<bool> {
    while (buffer_.size() < n) {
      TRY(bool more, fill());
      if (!more) return fail(unreachable(host_, port_, "the answer was cut off"));
    }
    bool go = true;
    if (visit) go = (*visit)(std::string_view(buffer_).substr(0, n));
    else response.body.append(buffer_, 0, n);
    buffer_.erase(0, n);
    return go;
  };
  if (response.status == 204 || response.status == 304) return {};
  if (header(response, "Transfer-Encoding") == "chunked") {
    while (true) {
      TRY(std::string size, read_line());
      size_t n = std::strtoul(size.c_str(), nullptr, 16);
      if (n == 0) {
        TRY_OK(read_line());
        return {};
      }
      TRY(bool go, take(n));
      TRY_OK(read_line());
      if (!go) {
        close(fd_);
        fd_ = -1;
        return {};
      }
    }
  }
  std::string length = header(response, "Content-Length");
  TRY_OK(take(std::strtoul(length.c_str(), nullptr, 10)));
  return {};
}

static Code code_of(int status) {
  switch (status) {
    case 401: return Code::unauthenticated;
    case 403: return Code::denied;
    case 404: return Code::not_found;
    case 409: return Code::conflict;
    case 412: return Code::precondition;
    case 429: return Code::exhausted;
    case 503: return Code::unavailable;
    default: return status >= 500 ? Code::internal : Code::invalid;
  }
}

static json::Value body_of(const wire::Response& response) {
  if (response.body.empty()) return {};
  auto parsed = json::parse(response.body, {.max_bytes = 1u << 30});
  return parsed ? std::move(*parsed) : json::Value(response.body);
}

// The server's own words.
static std::unexpected<Error> refused(const wire::Response& response) {
  json::Value value = body_of(response);
  std::string message;
  for (auto member : {"detail", "reason", "message", "error"})
    if (message.empty()) message = value.string_or(member);
  if (message.empty()) message = fmt::format("the server answered {}", response.status);
  std::string reason(value.string_or("error", "REFUSED"));
  return fail(code_of(response.status), std::move(reason), std::move(message));
}

Result<wire::Response> Client::send(std::string_view method, std::string_view path, std::string_view body, const wire::Headers& headers) {
  TRY_OK(connect());
  TRY_OK(write_request(method, path, body, headers));
  TRY(wire::Response response, read_head());
  TRY_OK(read_body(response, nullptr));
  if (header(response, "Connection") == "close") {
    close(fd_);
    fd_ = -1;
  }
  return response;
}

Result<void> Client::stream(std::string_view path, const std::function<bool(std::string_view)>& visit) {
  TRY_OK(connect());
  TRY_OK(write_request("GET", path, {}, {{"Accept", "text/event-stream"}}));
  TRY(wire::Response response, read_head());
  if (response.status < 400) return read_body(response, &visit);
  TRY_OK(read_body(response, nullptr));
  return refused(response);
}

Result<json::Value> Client::call(std::string_view method, std::string_view path, const json::Value* body) {
  TRY(wire::Response response, send(method, path, body ? json::print(*body) : std::string()));
  if (response.status >= 400) return refused(response);
  return body_of(response);
}

}  // namespace pawl::cli

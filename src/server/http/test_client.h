#pragma once
// An HTTP client for tests. It sends exactly the bytes that it is given.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

namespace pawl::server::testing {

struct Got {
  int status = 0;
  std::string head;  // with the status line
  std::string body;  // chunks joined
  std::string header(std::string_view name) const {
    std::string want = "\r\n" + std::string(name) + ": ";
    size_t at = head.find(want);
    if (at == std::string::npos) return {};
    at += want.size();
    return head.substr(at, head.find("\r\n", at) - at);
  }
};

class Client {
 public:
  explicit Client(uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void end_sending() { ::shutdown(fd_, SHUT_WR); }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Reads one more piece into the buffer; false at the end, or after `wait_ms` without bytes.
  bool receive(int wait_ms = 5000) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, wait_ms) <= 0) return false;
    char bytes[65536];
    ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) ended_ = true;
    if (got > 0) buffer.append(bytes, static_cast<size_t>(got));
    return got > 0;
  }
  bool ended() const { return ended_; }
  std::string until_end(int wait_ms = 5000) {
    while (receive(wait_ms)) {}
    return std::exchange(buffer, {});
  }
  bool fill(size_t size, int wait_ms = 5000) {
    while (buffer.size() < size) {
      if (!receive(wait_ms)) return false;
    }
    return true;
  }
  std::string take(size_t size) {
    std::string out = buffer.substr(0, size);
    buffer.erase(0, size);
    return out;
  }

  // The next answer; status 0 when none came. `head_only`: the answer has a length but no body.
  Got answer(bool head_only = false) {
    Got got;
    size_t end;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
      if (!receive()) return got;
    }
    got.head = take(end + 4);
    got.status = std::stoi(got.head.substr(9, 3));
    if (head_only || got.status == 100 || got.status == 101) return got;
    if (std::string length = got.header("Content-Length"); !length.empty()) {
      if (fill(std::stoul(length))) got.body = take(std::stoul(length));
    } else if (got.header("Transfer-Encoding") == "chunked") {
      for (std::string piece = chunk(); !piece.empty(); piece = chunk())
        got.body += piece;
    }
    return got;
  }
  // The next chunk; empty for the last chunk, or when the connection ended early.
  std::string chunk() {
    size_t end;
    while ((end = buffer.find("\r\n")) == std::string::npos) {
      if (!receive()) return {};
    }
    size_t size = std::stoul(buffer.substr(0, end), nullptr, 16);
    if (!fill(end + 2 + size + 2)) return {};
    take(end + 2);
    std::string piece = take(size);
    take(2);
    return piece;
  }
  Got ask(std::string_view bytes, bool head_only = false) {
    send(bytes);
    return answer(head_only);
  }
  Got get(std::string_view path, std::string_view headers = {}) {
    return ask("GET " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n" + std::string(headers) +
               "\r\n");
  }

  std::string buffer;

 private:
  int fd_;
  bool connected_ = false;
  bool ended_ = false;
};

}  // namespace pawl::server::testing

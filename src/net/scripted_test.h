#pragma once
// A server for tests of HTTP clients: it says exactly the bytes that the test gives it.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace pawl::net {

class ScriptedServer {
 public:
  // One connection: each text answers one request, then the connection is closed. Without a value,
  // the request is never answered and the connection stays open.
  using Connection = std::vector<std::optional<std::string>>;

  // Accepts one connection for each script. Answers are sent `step` bytes at a time; 0 sends them
  // whole.
  explicit ScriptedServer(std::vector<Connection> scripts, size_t step = 0)
      : step_(step), fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    CHECK(bind(fd_, reinterpret_cast<sockaddr*>(&at), size) == 0 && listen(fd_, 16) == 0);
    CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this, scripts = std::move(scripts)] {
      for (const Connection& script : scripts)
        serve(script);
    });
  }
  ~ScriptedServer() {
    // Wakes the thread out of accept() and recv(), so that it can be joined.
    shutdown(fd_, SHUT_RDWR);
    {
      std::lock_guard lock(mutex_);
      for (int peer : open_)
        shutdown(peer, SHUT_RDWR);
    }
    thread_.join();
    close(fd_);
    for (int peer : open_)
      close(peer);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  const std::string& address() const { return address_; }  // "127.0.0.1:PORT"
  std::string url() const { return "http://" + address_; }
  int connections() const { return connections_; }
  int requests() const { return requests_; }
  std::string last_request() {
    std::lock_guard lock(mutex_);
    return last_request_;
  }

 private:
  void serve(const Connection& script) {
    int peer = accept(fd_, nullptr, nullptr);
    if (peer < 0) return;
    ++connections_;
    {
      std::lock_guard lock(mutex_);
      open_.push_back(peer);
    }
    for (const auto& answer : script) {
      if (!read_request(peer)) break;
      if (!answer) return;
      say(peer, *answer);
    }
    // Unread bytes are drained before the close: otherwise the kernel sends a reset, and the client
    // may lose the answer.
    shutdown(peer, SHUT_WR);
    char rest[4096];
    while (recv(peer, rest, sizeof rest, MSG_DONTWAIT) > 0) {}
    shutdown(peer, SHUT_RDWR);
  }

  // A head and as many bytes of a body as the head says.
  bool read_request(int peer) {
    std::string text;
    char piece[4096];
    while (!complete(text)) {
      ssize_t n = recv(peer, piece, sizeof piece, 0);
      if (n <= 0) return false;
      text.append(piece, static_cast<size_t>(n));
    }
    std::lock_guard lock(mutex_);
    last_request_ = std::move(text);
    ++requests_;
    return true;
  }

  static bool complete(const std::string& text) {
    static constexpr std::string_view kLength = "Content-Length: ";
    size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    size_t length = text.find(kLength);
    size_t body = length < end ? std::stoul(text.substr(length + kLength.size())) : 0;
    return text.size() >= end + 4 + body;
  }

  void say(int peer, std::string_view text) const {
    while (!text.empty()) {
      std::string_view piece = text.substr(0, step_ ? step_ : text.size());
      if (send(peer, piece.data(), piece.size(), MSG_NOSIGNAL) <= 0) return;
      text.remove_prefix(piece.size());
    }
  }

  const size_t step_;
  int fd_;
  std::string address_;
  std::atomic<int> connections_{0}, requests_{0};
  std::mutex mutex_;
  std::string last_request_;
  std::vector<int> open_;
  std::thread thread_;
};

}  // namespace pawl::net

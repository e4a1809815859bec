#pragma once
// A connection between a client and PostgreSQL that loses a message when it is told to. The client
// sees its connection end and does not know whether the server got the message.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"

namespace pawl {

class LossyPipe {
 public:
  enum class Lose { nothing, request, answer };

  explicit LossyPipe(int server_port) : server_port_(server_port) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(::listen(listener_, 16) == 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~LossyPipe() {
    ending_ = true;
    accepting_.join();
    for (std::thread& pump : pumps_)
      pump.join();
    ::close(listener_);
  }
  int port() const { return port_; }
  int lost() const { return lost_; }
  // Loses the next request, or the answer to it, and cuts that connection. `then` runs when the
  // server has dealt with the request and before the client is told.
  void lose_next(Lose what, std::function<void()> then = {}) {
    std::lock_guard lock(mutex_);
    then_ = std::move(then);
    lose_ = what;
  }

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    return address;
  }
  void accept_all() {
    while (!ending_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (::poll(&waiting, 1, 20) != 1) continue;
      const int client = ::accept(listener_, nullptr, nullptr);
      const int server = ::socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address = loopback(server_port_);
      if (::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        ::close(client);
        ::close(server);
        continue;
      }
      pumps_.emplace_back([this, client, server] { pump(client, server); });
    }
  }
  void pump(int client, int server) {
    Lose losing = Lose::nothing;
    while (!ending_) {
      pollfd both[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
      if (::poll(both, 2, 20) <= 0) continue;
      if (both[0].revents) {
        losing = take_order();
        if (losing == Lose::request || !forward(client, server)) break;
      }
      if (both[1].revents) {
        if (losing == Lose::answer || !forward(server, client)) break;
      }
    }
    if (losing != Lose::nothing) {
      ++lost_;
      std::lock_guard lock(mutex_);
      if (then_) std::exchange(then_, {})();
    }
    ::close(client);
    ::close(server);
  }
  Lose take_order() { return lose_.exchange(Lose::nothing); }
  static bool forward(int from, int to) {
    char bytes[65536];
    const ssize_t size = ::recv(from, bytes, sizeof bytes, 0);
    return size > 0 && ::send(to, bytes, static_cast<size_t>(size), MSG_NOSIGNAL) == size;
  }

  const int server_port_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> ending_{false};
  std::atomic<Lose> lose_{Lose::nothing};
  std::atomic<int> lost_{0};
  std::mutex mutex_;
  std::function<void()> then_;
  std::vector<std::thread> pumps_;
  std::thread accepting_;
};

}  // namespace pawl

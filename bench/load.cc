#include "bench/load.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/result.h"

namespace pawl::bench {

std::string request(std::string_view method, std::string_view path, std::string_view body) {
  if (body.empty()) return fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n\r\n", method, path);
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n\r\n{}",
      method, path, body.size(), body);
}

namespace {

// One request at a time on each connection: `sent` is when it left.
struct Connection {
  int fd = -1;
  std::string in;
  double sent = 0;
};

int connect_to(const std::string& address) {
  size_t colon = address.rfind(':');
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &in.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(connect(fd, reinterpret_cast<sockaddr*>(&in), sizeof in) == 0);
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

// Removes one complete answer from the front; false while it is incomplete.
bool take(std::string& in, int& status, std::string& body) {
  size_t head = in.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  status = std::atoi(in.c_str() + 9);
  // The servers under test send a Content-Length with every answer, so chunked answers are not
  // read.
  size_t length = 0;
  if (const char* at = strcasestr(in.c_str(), "content-length:"); at && at < in.c_str() + head)
    length = std::strtoul(at + 15, nullptr, 10);
  if (in.size() < head + 4 + length) return false;
  body.assign(in, head + 4, length);
  in.erase(0, head + 4 + length);
  return true;
}

}  // namespace

Loaded run(const Load& load) {
  std::vector<Connection> all(load.connections);
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<size_t> parked;
  auto send_next = [&](size_t i) {
    std::string text = load.next(i);
    if (text.empty()) {
      parked.push_back(i);
      return;
    }
    all[i].sent = bench::seconds();
    CHECK(write(all[i].fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].fd = connect_to(load.address);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].fd, &event);
  }
  Loaded out;
  Latencies latencies;
  double begin = bench::seconds(), end = begin + load.seconds, now = begin;
  for (size_t i = 0; i < all.size(); ++i)
    send_next(i);
  std::string body;
  while ((now = bench::seconds()) < end && !(load.until && load.until())) {
    // Asks each parked connection once more; one that still has nothing to send parks again at the
    // end.
    for (size_t n = parked.size(); n-- > 0;) {
      size_t i = parked.front();
      parked.erase(parked.begin());
      send_next(i);
    }
    epoll_event events[256];
    int n = epoll_wait(epoll, events, 256, parked.empty() ? 100 : 1);
    for (int e = 0; e < n; ++e) {
      size_t i = events[e].data.u64;
      char piece[65536];
      ssize_t got = read(all[i].fd, piece, sizeof piece);
      CHECK(got > 0);
      all[i].in.append(piece, static_cast<size_t>(got));
      int status = 0;
      while (take(all[i].in, status, body)) {
        ++out.answers;
        if (status >= 400) ++out.failures;
        latencies.us.push_back((bench::seconds() - all[i].sent) * 1e6);
        if (load.got) load.got(i, status, body);
        send_next(i);
      }
    }
  }
  double took = now - begin;
  for (Connection& c : all)
    close(c.fd);
  close(epoll);
  out.rps = static_cast<double>(out.answers) / took;
  out.p50_us = latencies.p(50);
  out.p99_us = latencies.p(99);
  return out;
}

}  // namespace pawl::bench

// Parses addresses and opens listening sockets.

#include "server/http/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace pawl::server {
namespace {

struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

std::string_view numeric_host(std::string_view host) {
  if (host.empty()) return "0.0.0.0";
  return host == "localhost" ? std::string_view("127.0.0.1") : host;
}

Result<Endpoint> endpoint_of(const Address& address) {
  Endpoint endpoint;
  std::string host(numeric_host(address.host));
  auto* v4 = reinterpret_cast<sockaddr_in*>(&endpoint.storage);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address.port);
    endpoint.size = sizeof *v4;
    return endpoint;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&endpoint.storage);
  if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address.port);
    endpoint.size = sizeof *v6;
    return endpoint;
  }
  return fail(Code::invalid, "BAD_ADDRESS",
              "'" + host + "' is not an IP address; write 127.0.0.1:8080, :8080 or [::1]:8080");
}

std::unexpected<Error> cannot_listen(const Address& address, int error) {
  std::string why = std::strerror(error);
  if (error == EADDRINUSE)
    why += "; another program has this port, choose a free one (0 takes any)";
  return fail(Code::unavailable, "CANNOT_LISTEN",
              "cannot listen on " + address.text() + ": " + why);
}

uint16_t bound_port(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  if (storage.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
}

}  // namespace

std::string Address::text() const {
  std::string_view shown = numeric_host(host);
  bool v6 = shown.find(':') != std::string_view::npos;
  return (v6 ? "[" + std::string(shown) + "]" : std::string(shown)) + ":" + std::to_string(port);
}

bool Address::is_loopback() const {
  std::string_view shown = numeric_host(host);
  return shown == "::1" || shown.starts_with("127.");
}

Result<Address> parse_address(std::string_view text) {
  auto refuse = [&] {
    return fail(
        Code::invalid, "BAD_ADDRESS",
        "'" + std::string(text) + "' is not an address; write 127.0.0.1:8080, :8080 or [::1]:8080");
  };
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refuse();
  Address address;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refuse();
  }
  address.host = host;
  std::string_view port = text.substr(colon + 1);
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) return refuse();
  if (!endpoint_of(address)) return refuse();
  return address;
}

Result<Listener> listen_on(const Address& address) {
  TRY(Endpoint endpoint, endpoint_of(address));
  int fd = socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return cannot_listen(address, errno);
  int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  bool ok = bind(fd, reinterpret_cast<sockaddr*>(&endpoint.storage), endpoint.size) == 0 &&
            listen(fd, 4096) == 0;
  if (!ok) {
    int error = errno;
    close(fd);
    return cannot_listen(address, error);
  }
  Address got = address;
  got.port = bound_port(fd);
  return Listener{fd, got};
}

std::string network_of(std::string_view address) {
  std::string text(address);
  in6_addr bytes{};
  if (inet_pton(AF_INET6, text.c_str(), &bytes) != 1 || IN6_IS_ADDR_V4MAPPED(&bytes)) return text;
  return std::string(reinterpret_cast<const char*>(&bytes), 8);
}

}  // namespace pawl::server

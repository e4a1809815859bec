#pragma once
// The parts of an http or https URL that a client needs.

#include <string>
#include <string_view>

#include "base/result.h"

namespace pawl::net {

inline constexpr Reason kBadUrl{"BAD_URL"};

struct Url {
  bool tls = false;
  std::string host, port;  // an IPv6 address has no brackets here
  std::string target;      // path and query, as they are sent

  std::string origin() const;  // "https://host:port"
};

// Refuses URLs that are neither http nor https, that hold a user name, spaces or control
// characters, or that name no host. A fragment is dropped: it is not for the server.
Result<Url> parse_url(std::string_view url);

// The origin of a Pawl server from what a person typed: "host", "host:port", or either with
// "http://" or "https://" before it. The port defaults to 8080, and to 443 for https. The host
// defaults to 127.0.0.1.
std::string server_url(std::string_view typed);

}  // namespace pawl::net

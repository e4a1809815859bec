#pragma once
// The guard refuses requests that a browser sends on behalf of another web site. Such a request
// comes from inside the user's machine or network, so neither a loopback address nor --auth none
// keeps it out.
//
// Three kinds are refused:
//   - a `Host` that is no address, no loopback name and not listed: a name of the attacker that
//     resolves to this server (DNS rebinding);
//   - another site's request: a foreign `Origin`, or `Sec-Fetch-Site` that says so;
//   - a form's content type beside a header that only browsers send: forms need no preflight.
// Programs send none of these headers and are not affected.

#include <optional>
#include <string>
#include <vector>

#include "server/http/parser.h"
#include "wire/message.h"

namespace pawl::server {

struct BrowserRules {
  // Web sites that may call: "https://app.example". "*" allows every site.
  std::vector<std::string> allowed_origins{};
  // Further web sites that may open WebSockets.
  std::vector<std::string> socket_origins{};
  // Names of this server besides loopback names and addresses: "pawl.example", "*.example", or "*"
  // for every name.
  std::vector<std::string> allowed_hosts{};
};

class BrowserGuard {
 public:
  explicit BrowserGuard(BrowserRules rules);

  // Returns the refusal of the request, if it is refused.
  std::optional<HttpFault> check(const wire::Request& request) const;
  // The refusal of a host name, if it is refused: the `Host` of HTTP, the `:authority` of gRPC.
  std::optional<HttpFault> check_host(std::string_view host) const;
  // True for the origin of a web site that may call. False for an empty origin.
  bool allows(std::string_view origin) const;
  bool allows_all() const { return all_origins_; }

 private:
  bool knows_host(std::string_view host) const;

  const BrowserRules rules_;
  bool all_origins_ = false;
  bool all_hosts_ = false;
};

}  // namespace pawl::server

#include "server/http/browser_guard.h"

#include <arpa/inet.h>

#include <algorithm>

namespace pawl::server {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

// True when the origin is this server itself, as the client addresses it. The scheme is not
// compared: a proxy in front may have ended TLS.
bool is_own(std::string_view origin, std::string_view host) {
  size_t scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos) return false;
  std::string_view usual_port = origin.substr(0, scheme_end) == "https" ? "443" : "80";
  wire::HostPort theirs = wire::host_and_port(origin.substr(scheme_end + 3), usual_port);
  wire::HostPort ours = wire::host_and_port(host, usual_port);
  return !ours.host.empty() && wire::same_name(theirs.host, ours.host) && theirs.port == ours.port;
}

// The content types that a form can send to another site without asking it first.
bool is_form_type(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t'))
    type.remove_suffix(1);
  for (std::string_view form :
       {"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
    if (wire::same_name(type, form)) return true;
  return false;
}

HttpFault cross_site(std::string message) {
  return {403, {Code::denied, "CROSS_SITE", std::move(message)}};
}

}  // namespace

BrowserGuard::BrowserGuard(BrowserRules rules)
    : rules_(std::move(rules)),
      all_origins_(contains(rules_.allowed_origins, "*")),
      all_hosts_(contains(rules_.allowed_hosts, "*")) {}

bool BrowserGuard::allows(std::string_view origin) const {
  return !origin.empty() && (all_origins_ || contains(rules_.allowed_origins, origin));
}

bool BrowserGuard::knows_host(std::string_view authority) const {
  std::string host = lower(wire::host_and_port(authority, "").host);
  if (host.ends_with('.')) host.pop_back();
  if (is_address(host) || host == "localhost" || host.ends_with(".localhost")) return true;
  for (const std::string& allowed : rules_.allowed_hosts) {
    if (lower(allowed) == host) return true;
    if (allowed.starts_with("*.") && host.ends_with(lower(allowed).substr(1))) return true;
  }
  return false;
}

std::optional<HttpFault> BrowserGuard::check_host(std::string_view host) const {
  // Programs that speak HTTP/1.0 send no Host; browsers always send it.
  if (host.empty() || all_hosts_ || knows_host(host)) return std::nullopt;
  return HttpFault{421,
                   {Code::denied, "UNKNOWN_HOST",
                    "this server does not answer to the host name '" + std::string(host) +
                        "'; address it by IP address or localhost, or start it with "
                        "--allowed-hosts"}};
}

std::optional<HttpFault> BrowserGuard::check(const wire::Request& request) const {
  std::string_view host = request.header("Host");
  if (auto fault = check_host(host)) return fault;
  std::string_view origin = request.header("Origin");
  std::string_view site = request.header("Sec-Fetch-Site");
  if (!origin.empty()) {
    if (allows(origin)) return std::nullopt;
    bool socket = wire::lists_token(request.header("Upgrade"), "websocket");
    if (socket && contains(rules_.socket_origins, origin)) return std::nullopt;
    if (!is_own(origin, host))
      return cross_site("the web site " + std::string(origin) +
                        " may not call this server; allow it with --allowed-origins");
  }
  // Ports of one machine are the same site, but not the same program. Following a link there only
  // shows a page.
  bool navigates = request.header("Sec-Fetch-Mode") == "navigate" && request.method == "GET";
  if (site == "cross-site" || (site == "same-site" && origin.empty() && !navigates))
    return cross_site("requests that another web site makes in a browser are refused");
  // fetch() of Node sends `Sec-Fetch-Mode: cors` and none of the other headers. In a browser that
  // mode always comes with an Origin.
  std::string_view mode = request.header("Sec-Fetch-Mode");
  bool from_browser = !origin.empty() || !site.empty() || (!mode.empty() && mode != "cors") ||
                      request.has_header("Referer");
  if (from_browser && is_form_type(request.header("Content-Type")))
    return cross_site("a browser must send JSON: forms of other web sites look like this request");
  return std::nullopt;
}

}  // namespace pawl::server

#include "net/url.h"

#include <fmt/format.h>

#include <algorithm>

#include "wire/message.h"

namespace pawl::net {

namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";

bool is_space_or_control(char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; }

std::unexpected<Error> bad_url(std::string why) {
  return fail(Code::invalid, kBadUrl, std::move(why));
}

// An IPv6 address gets its brackets back here.
std::string origin_of(bool tls, const std::string& host, const std::string& port) {
  const bool address_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}{}:{}", tls ? kHttps : kHttp, address_v6 ? "[" : "", host,
                     address_v6 ? "]" : "", port);
}

}  // namespace

std::string Url::origin() const { return origin_of(tls, host, port); }

Result<Url> parse_url(std::string_view url) {
  Url out;
  std::string_view rest = url;
  out.tls = rest.starts_with(kHttps);
  if (!out.tls && !rest.starts_with(kHttp))
    return bad_url(fmt::format("'{}' is neither http:// nor https://", url.substr(0, 200)));
  rest.remove_prefix(out.tls ? kHttps.size() : kHttp.size());
  if (std::any_of(url.begin(), url.end(), is_space_or_control))
    return bad_url("a url may not hold spaces or control characters");
  rest = rest.substr(0, rest.find('#'));
  const size_t authority_end = rest.find_first_of("/?");
  std::string_view authority = rest.substr(0, authority_end);
  out.target = authority_end == std::string_view::npos ? "/" : rest.substr(authority_end);
  // "http://host?q" has no path, and a request target must begin with one.
  if (out.target[0] == '?') out.target.insert(0, "/");
  if (authority.find('@') != std::string_view::npos)
    return bad_url("a url may not hold a user or password");
  // libcurl decodes escapes in a host name, so it would call another host than the one the caller
  // has checked. Within brackets a '%' begins the zone of an IPv6 address.
  if (!authority.starts_with('[') && authority.find('%') != std::string_view::npos)
    return bad_url("the host of a url may not hold escapes");
  auto [host, port] = wire::host_and_port(authority, out.tls ? "443" : "80");
  if (host.empty()) return bad_url("the url names no host");
  out.host = std::move(host);
  out.port = std::move(port);
  return out;
}

std::string server_url(std::string_view typed) {
  const bool tls = typed.starts_with(kHttps);
  for (std::string_view scheme : {kHttp, kHttps})
    if (typed.starts_with(scheme)) typed.remove_prefix(scheme.size());
  while (typed.ends_with('/'))
    typed.remove_suffix(1);
  auto [host, port] = wire::host_and_port(typed, tls ? "443" : "8080");
  return origin_of(tls, host.empty() ? "127.0.0.1" : host, port);
}

}  // namespace pawl::net

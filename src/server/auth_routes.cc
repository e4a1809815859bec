// OAuth 2.0 client credentials (RFC 6749, 4.4) and the key document (RFC 7517).

#include "server/auth_routes.h"

#include <openssl/crypto.h>

#include <random>

#include "base/dice.h"
#include "base/hash.h"
#include "json/text.h"

namespace pawl::server {
namespace {

wire::Response oauth_error(int status, std::string_view error) {
  wire::Response response = wire::json_response(status, json::print(json::object({{"error", error}})));
  response.headers.emplace_back("Cache-Control", "no-store");
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Basic realm=\"pawl\"");
  return response;
}

struct Credentials {
  std::string id;
  std::string secret;
};

std::optional<Credentials> basic_credentials(std::string_view authorization) {
  constexpr std::string_view kScheme = "Basic ";
  if (authorization.size() <= kScheme.size() || !wire::same_name(authorization.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  auto text = unbase64(authorization.substr(kScheme.size()));
  if (!text) return std::nullopt;
  size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  // RFC 6749, 2.3.1: both halves are form-encoded before they are joined.
  return Credentials{wire::percent_decode(std::string_view(*text).substr(0, colon), true),
                     wire::percent_decode(std::string_view(*text).substr(colon + 1), true)};
}

// Compares hashes in constant time, so that neither length nor content of the secret shows.
bool same_secret(std::string_view a, std::string_view b) {
  Digest left = sha256(a), right = sha256(b);
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string token_id() {
  std::random_device device;
  auto draw = [&] { return static_cast<uint64_t>(device()) << 32 | device(); };
  return Dice({draw(), draw()}).uuid4();
}

json::Value claims_of(const MachineClient& client) {
  json::Array roles;
  std::string_view rest = client.caller.roles;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    if (std::string_view role = rest.substr(0, comma); !role.empty()) roles.emplace_back(role);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return json::object({{"sub", client.id},
                       {"caas_user_id", client.caller.user},
                       {"caas_org_id", client.caller.tenant},
                       {"scopes", std::move(roles)},
                       {"caas_tier", "unlimited"},
                       {"jti", token_id()}});
}

wire::Response give_token(Authenticator& authenticator, const FindClient& find, const wire::Request& request) {
  if (authenticator.mode() == AuthMode::none) return oauth_error(501, "not_implemented");
  auto credentials = basic_credentials(request.header("Authorization"));
  if (!credentials) return oauth_error(401, "invalid_client");
  auto client = find(credentials->id);
  // An unknown client costs the same comparison as a known one.
  bool good = same_secret(client ? client->secret : "", credentials->secret) && client && !client->secret.empty();
  if (!good) return oauth_error(401, "invalid_client");
  wire::Request form;
  form.query = request.body;
  if (form.query_param("grant_type") != "client_credentials") return oauth_error(400, "unsupported_grant_type");
  auto token = authenticator.issue(claims_of(*client));
  if (!token) return oauth_error(501, "not_implemented");
  wire::Response response = wire::json_response(200, json::print(json::object({{"access_token", *token},
                                                                               {"token_type", "Bearer"},
                                                                               {"expires_in", authenticator.expiry_seconds()}})));
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace

std::vector<wire::Route> auth_routes(Authenticator& authenticator, FindClient find, const std::string& prefix) {
  auto token = [&authenticator, find = std::move(find)](wire::Request request, wire::Respond respond) {
    respond(give_token(authenticator, find, request));
  };
  auto keys = [&authenticator](wire::Request, wire::Respond respond) {
    bool on = authenticator.mode() == AuthMode::jwt;
    respond(on ? wire::json_response(200, authenticator.jwks()) : wire::json_response(404, R"({"error":"not_found"})"));
  };
  return {
      {"POST", prefix + "/oauth/token", token, "Exchanges a client's id and secret for a token.", true},
      {"GET", prefix + "/.well-known/jwks.json", keys, "The public keys of the tokens that we sign.", true},
  };
}

}  // namespace pawl::server

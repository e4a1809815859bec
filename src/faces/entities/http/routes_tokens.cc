#include <fmt/format.h>

#include "base/hash.h"
#include "faces/entities/http/client_secret.h"
#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

// Issues tokens: for a machine client, or for a user in exchange for a token that a trusted key has
// signed.

namespace pawl::entities {

namespace {

constexpr std::string_view kExchange = "urn:ietf:params:oauth:grant-type:token-exchange";
constexpr std::string_view kJwtType = "urn:ietf:params:oauth:token-type:jwt";

void oauth_error(HttpExchange& http, int status, std::string_view error,
                 std::string_view description = {}) {
  json::Object body;
  body.add("error", error);
  if (!description.empty()) body.add("error_description", description);
  wire::Response response = wire::json_response(status, json::print(body));
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Basic");
  http.answer(std::move(response));
}

void too_many_logins(HttpExchange& http, Time wait) {
  std::string seconds = std::to_string((wait + kSecond - 1) / kSecond);
  wire::Response response = wire::json_response(
      429, json::print(json::object({{"error", "temporarily_unavailable"},
                                     {"error_description",
                                      "too many failed logins of this client or address; try again "
                                      "in " +
                                          seconds + " s"}})));
  response.headers.emplace_back("Retry-After", seconds);
  http.answer(std::move(response));
}

// Client id and secret of HTTP Basic, both percent-encoded as OAuth requires.
std::pair<std::string, std::string> basic(const HttpExchange& http) {
  std::string_view header = http.request.header("Authorization");
  if (!header.starts_with("Basic ")) return {};
  auto text = unbase64(header.substr(6));
  size_t colon = text ? text->find(':') : std::string::npos;
  if (colon == std::string::npos) return {};
  return {wire::percent_decode(text->substr(0, colon), true),
          wire::percent_decode(text->substr(colon + 1), true)};
}

void give_token(HttpExchange& http, json::Value claims, std::string_view issued_type = {}) {
  const Keys& keys = http.face.options().keys;
  claims.object().set("caas_tier", "unlimited");
  claims.object().set("jti", random_uuid(keys));
  auto token = keys.issue(std::move(claims));
  if (!token) return http.refuse(token.error());
  json::Object body;
  body.add("access_token", *token);
  body.add("token_type", "Bearer");
  body.add("expires_in", keys.expiry_seconds);
  if (!issued_type.empty()) body.add("issued_token_type", issued_type);
  wire::Response response = wire::json_response(200, json::print(body));
  response.headers.emplace_back("Cache-Control", "no-store");
  http.answer(std::move(response));
}

void for_client(HttpExchange& http, const json::Value& client) {
  give_token(http, json::object({{"sub", client.string_or("clientId")},
                                 {"caas_user_id", client.string_or("userId")},
                                 {"caas_org_id", client.string_or("tenantId")},
                                 {"cgen", generation_of(client)},
                                 {"scopes", split_roles(client.string_or("roles"))}}));
}

// The reason why a trusted key is not valid now; empty when it is.
std::string_view unusable(const json::Value& key, Time now) {
  const json::Value* active = key.find("active");
  if (active && active->is_bool() && !active->boolean()) return "trusted key is inactive";
  auto from = parse_rfc3339(key.string_or("validFrom")),
       to = parse_rfc3339(key.string_or("validTo"));
  if (from && now < *from) return "trusted key not yet valid";
  if (to && now > *to) return "trusted key expired";
  return {};
}

bool names_issuer(const json::Value& key, std::string_view issuer) {
  const json::Value* issuers = key.find("issuers");
  if (!issuers || !issuers->is_array() || issuers->array().empty()) return true;
  for (const json::Value& one : issuers->array())
    if (one.is_string() && one.string() == issuer) return true;
  return false;
}

// Checks the subject token against the trusted keys of the client's tenant and returns its claims.
Result<json::Value> subject_claims(HttpExchange& http, std::string_view tenant) {
  const Keys& keys = http.face.options().keys;
  json::Value key;
  auto jwk_of = [&](std::string_view kid) -> Result<json::Value> {
    TRY(key, http.service().cell_json(trusted_key_key(tenant, kid)));
    if (!key.is_object()) return fail(Code::invalid, "invalid_grant", "unknown trusted key");
    if (auto why = unusable(key, http.service().kernel().now()); !why.empty())
      return fail(Code::invalid, "invalid_grant", std::string(why));
    return *key.find("jwk");
  };
  TRY(json::Value claims,
      keys.read_token(http.request.form_param(http::kToken["subject_token"]).value_or(""), jwk_of));
  if (!names_issuer(key, claims.string_or("iss")))
    return fail(Code::invalid, "invalid_grant", "untrusted token issuer");
  if (claims.string_or("sub").empty())
    return fail(Code::invalid, "invalid_grant", "subject token missing sub claim");
  return claims;
}

void exchange(HttpExchange& http, const json::Value& client) {
  if (http.request.form_param(http::kToken["subject_token_type"]) != kJwtType)
    return oauth_error(http, 400, "invalid_grant", "unsupported subject_token_type");
  std::string_view tenant = client.string_or("tenantId");
  auto subject = subject_claims(http, tenant);
  if (!subject) return oauth_error(http, 400, "invalid_grant", subject.error().message);
  if (subject->string_or("caas_org_id") != tenant)
    return oauth_error(http, 403, "access_denied", "tenant mismatch");
  const json::Value* roles = subject->find("user_roles");
  if (!roles) roles = subject->find("roles");
  give_token(http,
             json::object({{"sub", subject->string_or("sub")},
                           {"caas_user_id", subject->string_or("sub")},
                           {"caas_org_id", tenant},
                           {"user_roles", roles ? *roles : json::Value(json::Array())},
                           {"cgen", generation_of(client)},
                           {"act", json::object({{"sub", client.string_or("clientId")}})}}),
             kJwtType);
}

struct Login {
  std::string id, secret, address;
};

void refuse_login(HttpExchange& http, const Login& login) {
  http.face.options().keys.login_tried(login.id, login.address, false);
  oauth_error(http, 401, "invalid_client");
}

void log_in(HttpExchange& http, const Login& login, const json::Value& client) {
  const Keys& keys = http.face.options().keys;
  // Guesses that arrived together have been let in together.
  if (auto wait = keys.login_wait(login.id, login.address)) return too_many_logins(http, *wait);
  if (!is_client_secret(login.secret, client.string_or("secretHash")))
    return refuse_login(http, login);
  keys.login_tried(login.id, login.address, true);
  std::string grant = http.request.form_param(http::kToken["grant_type"]).value_or("");
  if (grant == "client_credentials")
    for_client(http, client);
  else if (grant == kExchange)
    exchange(http, client);
  else
    oauth_error(http, 400, "unsupported_grant_type");
}

Result<void> token(const HttpExchangePtr& http) {
  const Keys& keys = http->face.options().keys;
  if (!keys.issue)
    return fail(Code::unsupported, "NOT_IMPLEMENTED",
                "tokens are issued when the server runs with --auth jwt and a signing key");
  auto [id, secret] = basic(*http);
  Login login{id, secret, http->request.peer ? http->request.peer->address() : std::string()};
  if (auto wait = keys.login_wait(login.id, login.address)) {
    too_many_logins(*http, *wait);
    return {};
  }
  TRY(json::Value client, http->service().cell_json(client_key(login.id)));
  if (login.id.empty() || !client.is_object()) {
    refuse_login(*http, login);
    return {};
  }
  // Guesses from another address have a lane of their own.
  std::string owner = fmt::format("{} {}", client.string_or("tenantId"), login.address);
  auto waits = http->service().run_access(
      owner, [http, login, client = std::move(client)] { log_in(*http, login, client); });
  if (!waits) too_many_logins(*http, kSecond);
  return {};
}

Result<Bytes> jwks(HttpExchange& http) {
  const Keys& keys = http.face.options().keys;
  if (!keys.jwks)
    return fail(Code::not_found, "NOT_FOUND",
                "there are no keys: the server runs without authentication");
  return keys.jwks();
}

}  // namespace

std::string generation_of(const json::Value& client) {
  return hex(view(sha256("pawl client generation", client.string_or("secretHash"))).substr(0, 16));
}

std::string random_uuid(const Keys& keys) {
  Bytes random = keys.secret();
  std::array<uint64_t, 2> seed{};
  std::memcpy(seed.data(), random.data(), sizeof seed);
  return Dice(seed).uuid4();
}

void add_token_routes(RouteTable& routes) {
  routes.add("GET", "/.well-known/jwks.json", jwks,
             "The public keys that verify the tokens of this server.", http::kGetJwks, true);
  routes.add_async(
      "POST", "/oauth/token", token,
      "Issues a token for a machine client, or for a user with a token of a trusted key.",
      http::kIssueToken, true);
}

}  // namespace pawl::entities

#include <fmt/format.h>
#include <openssl/crypto.h>

#include "base/hash.h"
#include "faces/entities/http.h"
#include "json/text.h"

// Who the caller is, tokens for machines, and the keys behind them.

namespace pawl::entities {

namespace {

json::Array split_roles(std::string_view roles) {
  json::Array out;
  while (!roles.empty()) {
    size_t comma = roles.find(',');
    if (comma != 0) out.emplace_back(roles.substr(0, comma));
    roles = comma == roles.npos ? std::string_view() : roles.substr(comma + 1);
  }
  return out;
}

Result<std::string> join_roles(const json::Value* roles) {
  std::string out;
  if (!roles || !roles->is_array()) return bad_request("'roles' must be an array of strings");
  for (const json::Value& r : roles->array()) {
    if (!r.is_string() || r.string().find(',') != std::string::npos) return bad_request("'roles' must be an array of strings");
    out += (out.empty() ? "" : ",") + r.string();
  }
  return out;
}

bool same_secret(std::string_view a, std::string_view b) { return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

Result<Bytes> account(Http& http) {
  const Caller& caller = http.request.caller;
  json::Array roles;
  for (const json::Value& r : split_roles(caller.roles)) roles.push_back(json::object({{"id", r}}));
  std::string legal = caller.tenant == "mock-tenant" ? "Mock Tenant" : caller.tenant;
  return json::print(json::object({{"userAccountInfo", json::object({
      {"userId", caller.user},
      {"userName", caller.user},
      {"legalEntity", json::object({{"id", caller.tenant}, {"name", legal}})},
      {"roles", std::move(roles)},
      {"currentSubscription", json::object({{"tier", "unlimited"}})},
  })}}));
}

Result<Bytes> not_implemented(Http& http) {
  return fail(Code::unsupported, "NOT_IMPLEMENTED", fmt::format("{} {} is declared by the API but not implemented", http.request.method, http.request.path));
}

void oauth_error(Http& http, int status, std::string_view error) {
  wire::Response response = wire::json_response(status, json::print(json::object({{"error", error}})));
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Basic");
  http.answer(std::move(response));
}

// HTTP Basic with both halves percent-encoded, as OAuth wants it.
std::pair<std::string, std::string> basic(const Http& http) {
  std::string_view header = http.request.header("Authorization");
  if (!header.starts_with("Basic ")) return {};
  auto text = unbase64(header.substr(6));
  size_t colon = text ? text->find(':') : std::string::npos;
  if (colon == std::string::npos) return {};
  return {wire::percent_decode(text->substr(0, colon), true), wire::percent_decode(text->substr(colon + 1), true)};
}

std::string form_field(std::string_view body, std::string_view name) {
  while (!body.empty()) {
    size_t amp = body.find('&');
    std::string_view pair = body.substr(0, amp);
    body = amp == body.npos ? std::string_view() : body.substr(amp + 1);
    size_t eq = pair.find('=');
    if (eq != pair.npos && wire::percent_decode(pair.substr(0, eq), true) == name) return wire::percent_decode(pair.substr(eq + 1), true);
  }
  return {};
}

void give_token(Http& http, const json::Value& client, const std::string& user) {
  const Keys& keys = http.face.options().keys;
  Bytes random = keys.secret ? keys.secret() : Bytes();
  json::Value claims = json::object({
      {"sub", client.string_or("clientId")},
      {"caas_user_id", user},
      {"caas_org_id", client.string_or("tenantId")},
      {"scopes", split_roles(client.string_or("roles"))},
      {"caas_tier", "unlimited"},
      {"jti", hex(BytesView(random).substr(0, 16))},
  });
  auto token = keys.issue(std::move(claims));
  if (!token) return http.refuse(token.error());
  wire::Response response = wire::json_response(200, json::print(json::object({{"access_token", *token}, {"token_type", "Bearer"}, {"expires_in", keys.expiry_seconds}})));
  response.headers.emplace_back("Cache-Control", "no-store");
  http.answer(std::move(response));
}

Result<void> token(const HttpPtr& http) {
  const Keys& keys = http->face.options().keys;
  if (!keys.issue) return fail(Code::unsupported, "NOT_IMPLEMENTED", "tokens are issued when the server runs with --auth jwt and a signing key");
  auto [id, secret] = basic(*http);
  TRY(json::Value client, http->service().cell_json(client_key(id)));
  bool good = same_secret(hex(view(sha256(secret))), client.string_or("secretHash"));
  if (id.empty() || !client.is_object() || !good) return oauth_error(*http, 401, "invalid_client"), Result<void>();
  std::string grant = form_field(http->request.body, "grant_type");
  if (grant == "client_credentials") return give_token(*http, client, std::string(client.string_or("userId"))), Result<void>();
  if (grant != "urn:ietf:params:oauth:grant-type:token-exchange" || !keys.verify) return oauth_error(*http, 400, "unsupported_grant_type"), Result<void>();
  auto subject = keys.verify(form_field(http->request.body, "subject_token"));
  if (!subject || subject->tenant != client.string_or("tenantId")) return oauth_error(*http, 400, "invalid_grant"), Result<void>();
  json::Value acting = client;
  acting.object().set("roles", subject->roles);
  give_token(*http, acting, subject->user);
  return {};
}

Result<Bytes> jwks(Http& http) {
  const Keys& keys = http.face.options().keys;
  if (!keys.jwks) return fail(Code::not_found, "NOT_FOUND", "there are no keys: nobody is authenticated");
  return keys.jwks();
}

Result<void> jwt_admin(const Http& http) {
  if (!http.face.options().keys.issue) return fail(Code::unsupported, "NOT_IMPLEMENTED", "machine clients exist when the server runs with --auth jwt and a signing key");
  return http.role("ROLE_ADMIN");
}

// Admins see and change the clients of their own tenant only.
Result<json::Value> own_client(Http& http, const std::string& id) {
  TRY(json::Value client, http.service().cell_json(client_key(id)));
  if (!client.is_object() || client.string_or("tenantId") != http.tenant()) return fail(Code::not_found, "CLIENT_NOT_FOUND", fmt::format("there is no M2M client '{}'", id));
  return client;
}

Result<Bytes> list_clients(Http& http) {
  TRY_OK(jwt_admin(http));
  json::Array out;
  TRY_OK(http.service().door().look().scan(clients_prefix(), [&](BytesView, const Cell& cell) {
    auto c = json::parse(cell.value());
    if (c && c->string_or("tenantId") == http.tenant())
      out.push_back(json::object({{"clientId", c->string_or("clientId")}, {"tenantId", http.tenant()}, {"userId", c->string_or("userId")}, {"roles", split_roles(c->string_or("roles"))}}));
    return true;
  }));
  return json::print(out);
}

void store_client(const HttpPtr& http, json::Value client, int status) {
  Bytes random = http->face.options().keys.secret();
  std::string secret = base64url(random), id(client.string_or("clientId"));
  client.object().set("secretHash", hex(view(sha256(secret))));
  http->service().act(http->who(), "client.put", std::move(client), [http, id, secret, status](Result<Bytes> a) {
    if (!a) return http->refuse(a.error());
    http->answer(wire::json_response(status, json::print(json::object({{"clientId", id}, {"clientSecret", secret}}))));
  });
}

Result<void> new_client(const HttpPtr& http) {
  TRY_OK(jwt_admin(*http));
  TRY(json::Value body, http->body());
  std::string tenant(body.string_or("tenantId", http->tenant())), user(body.string_or("userId"));
  // The operator's tenant, that of the bootstrap client, makes the first client of every other.
  const auto& operators = http->face.options().bootstrap;
  bool is_operator = !operators.client_id.empty() && http->tenant() == operators.tenant;
  if (tenant != http->tenant() && !is_operator) return fail(Code::denied, "FORBIDDEN", "clients can be made for your own tenant only");
  if (user.empty()) return bad_request("'userId' is required");
  TRY(std::string roles, join_roles(body.find("roles")));
  Bytes random = http->face.options().keys.secret();
  std::string id = hex(BytesView(random).substr(0, 12));
  store_client(http, json::object({{"clientId", id}, {"tenantId", tenant}, {"userId", user}, {"roles", roles}}), 201);
  return {};
}

Result<void> reset_secret(const HttpPtr& http) {
  TRY_OK(jwt_admin(*http));
  TRY(json::Value client, own_client(*http, http->param(0)));
  store_client(http, std::move(client), 200);
  return {};
}

Result<void> delete_client_route(const HttpPtr& http) {
  TRY_OK(jwt_admin(*http));
  TRY_OK(own_client(*http, http->param(0)));
  http->service().act(http->who(), "client.delete", json::object({{"clientId", http->param(0)}}), [http](Result<Bytes> a) {
    a ? http->answer({.status = 204}) : http->refuse(a.error());
  });
  return {};
}

Result<Bytes> list_trusted(Http& http) {
  TRY_OK(jwt_admin(http));
  json::Array out;
  TRY_OK(http.service().door().look().scan(trusted_keys_prefix(), [&](BytesView, const Cell& cell) {
    auto key = json::parse(cell.value());
    if (key && key->string_or("tenantId") == http.tenant()) out.push_back(*std::move(key));
    return true;
  }));
  return json::print(out);
}

Result<void> trust_key(const HttpPtr& http) {
  TRY_OK(jwt_admin(*http));
  TRY(json::Value body, http->body());
  std::string kid(body.string_or("keyId", body.string_or("kid")));
  const json::Value* jwk = body.find("jwk");
  if (kid.empty() || !jwk) return bad_request("a trusted key needs 'keyId' and 'jwk'");
  TRY_OK(http->face.options().keys.trust(kid, *jwk));
  json::Value row = json::object({{"kid", kid}, {"tenantId", http->tenant()}, {"jwk", *jwk}});
  http->service().act(http->who(), "key.put", std::move(row), [http, kid](Result<Bytes> a) {
    a ? http->json(json::print(json::object({{"keyId", kid}}))) : http->refuse(a.error());
  });
  return {};
}

Result<void> distrust_key(const HttpPtr& http) {
  TRY_OK(jwt_admin(*http));
  TRY(json::Value key, http->service().cell_json(trusted_key_key(http->param(0))));
  if (key.string_or("tenantId") != http->tenant()) return fail(Code::not_found, "KEY_NOT_FOUND", fmt::format("there is no trusted key '{}'", http->param(0)));
  (void)http->face.options().keys.distrust(http->param(0));
  http->service().act(http->who(), "key.delete", json::object({{"kid", http->param(0)}}), [http](Result<Bytes> a) { a ? http->answer({.status = 204}) : http->refuse(a.error()); });
  return {};
}

}  // namespace

void add_account_routes(Rows& rows) {
  rows.now("GET", "/health", [](Http&) -> Result<Bytes> { return Bytes(R"({"status":"UP"})"); }, "Whether the server is up.", true);
  rows.now("GET", "/account", account, "Who the caller is.");
  rows.now("GET", "/.well-known/jwks.json", jwks, "The public keys of the tokens that are issued here.", true);
  rows.later("POST", "/oauth/token", token, "A token for a machine client.", true);
  rows.now("GET", "/account/m2m", list_clients, "The machine clients of the tenant.");
  rows.later("POST", "/account/m2m", new_client, "Makes a machine client; its secret is shown once.");
  rows.later("DELETE", "/account/m2m/{id}", delete_client_route, "Deletes a machine client.");
  rows.later("POST", "/account/m2m/{id}/secret/reset", reset_secret, "Gives a machine client a new secret.");
  rows.now("GET", "/oauth/keys/trusted", list_trusted, "Keys of others whose tokens may be exchanged.");
  rows.later("POST", "/oauth/keys/trusted", trust_key, "Trusts a key.");
  rows.later("DELETE", "/oauth/keys/trusted/{id}", distrust_key, "Trusts a key no more.");
  for (const char* path : {"/clients", "/account/subscriptions", "/oauth/oidc/{rest...}", "/sql/schema/{rest...}", "/platform-api/stream-data/{rest...}"})
    for (const char* method : {"GET", "POST", "PUT", "DELETE"}) rows.now(method, path, not_implemented, "Declared, not implemented.");
}

}  // namespace pawl::entities

#include <fmt/format.h>

#include "base/hash.h"
#include "base/log.h"
#include "faces/entities/http/client_secret.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

// The caller's account, the machine clients of its tenant, the log level.

namespace pawl::entities {

json::Array split_roles(std::string_view roles) {
  json::Array out;
  while (!roles.empty()) {
    size_t comma = roles.find(',');
    if (comma != 0) out.emplace_back(roles.substr(0, comma));
    roles = comma == roles.npos ? std::string_view() : roles.substr(comma + 1);
  }
  return out;
}

namespace {

Result<std::string> join_roles(const json::Value* roles) {
  std::string out;
  if (!roles || !roles->is_array()) return bad_request("'roles' must be an array of strings");
  for (const json::Value& r : roles->array()) {
    if (!r.is_string() || r.string().find(',') != std::string::npos)
      return bad_request("'roles' must be an array of strings");
    out += (out.empty() ? "" : ",") + r.string();
  }
  return out;
}

Result<Bytes> account(HttpExchange& http) {
  const Caller& caller = http.request.caller;
  json::Array roles;
  for (const json::Value& r : split_roles(caller.roles))
    roles.push_back(json::object({{"id", r}}));
  std::string legal = caller.tenant == kDefaultTenant ? "Mock Tenant" : caller.tenant;
  return json::print(
      json::object({{"userAccountInfo",
                     json::object({
                         {"userId", caller.user},
                         {"userName", caller.user},
                         {"legalEntity", json::object({{"id", caller.tenant}, {"name", legal}})},
                         {"roles", std::move(roles)},
                         {"currentSubscription", json::object({{"tier", "unlimited"}})},
                     })}}));
}

Result<Bytes> not_implemented(HttpExchange& http) {
  return fail(Code::unsupported, "NOT_IMPLEMENTED",
              fmt::format("{} {} is declared by the API but not implemented", http.request.method,
                          http.request.path));
}

std::string_view level_now() {
  constexpr std::string_view names[] = {"debug", "info", "warn", "error", "off"};
  return names[static_cast<size_t>(pawl::log_level())];
}

Result<Bytes> get_log_level(HttpExchange&) {
  return json::print(json::object({{"level", level_now()}}));
}

Result<Bytes> set_log_level(HttpExchange& http) {
  TRY(wire::BodyReader body, http.body_object());
  TRY(std::string given, body.text("level"));
  auto level = parse_level(given);
  if (!level)
    return bad_request(fmt::format("'level' is '{}'; use debug, info, warn, error or off", given));
  std::string_view previous = level_now();
  pawl::log_level(*level);
  return json::print(json::object({{"level", level_now()}, {"previous", previous}}));
}

// Admins see and change only the clients of their own tenant.
Result<json::Value> own_client(HttpExchange& http, const std::string& id) {
  TRY(json::Value client, http.service().cell_json(client_key(id)));
  if (!client.is_object() || client.string_or("tenantId") != http.tenant())
    return fail(Code::not_found, "M2M_CLIENT_NOT_FOUND",
                fmt::format("there is no M2M client '{}'", id));
  return client;
}

Result<Bytes> list_clients(HttpExchange& http) {
  TRY_OK(http.issues_tokens());
  json::Array out;
  TRY_OK(
      http.service().kernel().snapshot().scan(clients_prefix(), [&](BytesView, const Cell& cell) {
        auto c = json::parse(cell.value());
        if (c && c->string_or("tenantId") == http.tenant())
          out.push_back(json::object({{"clientId", c->string_or("clientId")},
                                      {"tenantId", http.tenant()},
                                      {"userId", c->string_or("userId")},
                                      {"roles", split_roles(c->string_or("roles"))}}));
        return true;
      }));
  return json::print(out);
}

void store_client(const HttpExchangePtr& http, json::Value client, int status) {
  Bytes random = http->face.options().keys.secret();
  std::string secret = base64url(random), id(client.string_or("clientId"));
  Bytes salt = http->face.options().keys.secret().substr(0, 16);
  client.object().set("secretHash", hash_client_secret(secret, salt));
  std::string generation = generation_of(client);
  http->service().act(
      http->context(), "client.put", std::move(client),
      [http, id, secret, status, generation](Result<Bytes> a) {
        if (!a) return http->refuse(a.error());
        http->face.options().keys.client_changed(id, generation);
        http->answer(wire::json_response(
            status, json::print(json::object({{"clientId", id}, {"clientSecret", secret}}))));
      });
}

Result<void> new_client(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  TRY(wire::BodyReader body, http->body_object());
  std::string tenant(body.value().string_or("tenantId", http->tenant()));
  // The operator may create the first client of another tenant.
  if (tenant != http->tenant() && !http->is_operator())
    return fail(Code::denied, "FORBIDDEN", "clients can be made for your own tenant only");
  TRY(std::string user, body.text("userId"));
  if (user.empty()) return bad_request("'userId' is required");
  TRY(std::string roles, join_roles(body.value().find("roles")));
  std::string id = random_uuid(http->face.options().keys);
  store_client(
      http,
      json::object({{"clientId", id}, {"tenantId", tenant}, {"userId", user}, {"roles", roles}}),
      201);
  return {};
}

Result<void> reset_secret(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  TRY(json::Value client, own_client(*http, http->param(0)));
  store_client(http, std::move(client), 200);
  return {};
}

Result<void> delete_client_route(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  TRY_OK(own_client(*http, http->param(0)));
  http->service().act(http->context(), "client.delete",
                      json::object({{"clientId", http->param(0)}}), [http](Result<Bytes> a) {
                        if (!a) return http->refuse(a.error());
                        http->face.options().keys.client_deleted(http->param(0));
                        http->answer({.status = 204});
                      });
  return {};
}

}  // namespace

void add_account_routes(RouteTable& routes) {
  routes.add(
      "GET", "/health", [](HttpExchange&) -> Result<Bytes> { return Bytes(R"({"status":"UP"})"); },
      "Whether the server is up.", true);
  routes.add("GET", "/account", account, "The account of the caller.");
  routes.add("GET", "/admin/log-level", get_log_level, "The log level of the server.");
  routes.add("POST", "/admin/log-level", set_log_level,
             "Sets the log level until the server is restarted.");
  routes.add("GET", "/account/m2m", list_clients, "The machine clients of the tenant.");
  routes.add_async("POST", "/account/m2m", new_client,
                   "Creates a machine client; its secret is shown once.");
  routes.add_async("DELETE", "/account/m2m/{id}", delete_client_route, "Deletes a machine client.");
  routes.add_async("POST", "/account/m2m/{id}/secret/reset", reset_secret,
                   "Gives a machine client a new secret.");
  for (const char* path : {"/clients", "/account/subscriptions", "/oauth/oidc/{rest...}",
                           "/sql/schema/{rest...}", "/platform-api/stream-data/{rest...}"})
    for (const char* method : {"GET", "POST", "PUT", "DELETE"})
      routes.add(method, path, not_implemented, "Declared, not implemented.");
}

}  // namespace pawl::entities

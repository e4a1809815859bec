#include <fmt/format.h>

#include "base/hash.h"
#include "base/log.h"
#include "faces/entities/http/client_secret.h"
#include "faces/entities/http/operations.h"
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

// Limits of machine clients. Every login reads a client, and an admin lists all of them.
constexpr size_t kMaxClients = 1000;
constexpr size_t kMaxRoles = 100;
constexpr size_t kNameBytes = 256;

Result<std::string> join_roles(const json::Value* roles) {
  std::string out;
  if (!roles || !roles->is_array()) return bad_request("'roles' must be an array of strings");
  if (roles->array().size() > kMaxRoles)
    return bad_request(fmt::format("'roles' has more than {} roles", kMaxRoles));
  for (const json::Value& r : roles->array()) {
    if (!r.is_string() || r.string().find(',') != std::string::npos)
      return bad_request("'roles' must be an array of strings");
    if (r.string().size() > kNameBytes)
      return bad_request(fmt::format("a role has at most {} bytes", kNameBytes));
    out += (out.empty() ? "" : ",") + r.string();
  }
  return out;
}

// The caller of a server without authentication, whose name clients of the original show.
constexpr std::string_view kMockUser = "mock-user-001";

// Every tenant has everything: there are no tiers and no end.
json::Value subscription_of(const std::string& tenant) {
  return json::object({{"id", "unlimited"},
                       {"legalEntityId", tenant},
                       {"limits", json::Array()},
                       {"periodFrom", rfc3339(0)},
                       {"status", "ACTIVE"},
                       {"tierName", "unlimited"}});
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
                         {"userName", caller.user == kMockUser ? "Mock User" : caller.user},
                         {"legalEntity", json::object({{"id", caller.tenant}, {"name", legal}})},
                         {"roles", std::move(roles)},
                         {"currentSubscription", subscription_of(caller.tenant)},
                     })}}));
}

Result<Bytes> not_implemented(HttpExchange& http) {
  return fail(Code::unsupported, "NOT_IMPLEMENTED",
              fmt::format("{} {} is declared by the API but not implemented", http.request.method,
                          http.request.path));
}

// Paths that the API declares and that this server, like the original, does not implement.
struct DeclaredRoute {
  std::string_view method, path;
  wire::Operation operation;
};
constexpr wire::Operation declared(std::string_view id) {
  return {.id = id,
          .replies = {
              {501, "Declared by the API, not implemented.", http::kProblem, http::kProblemJson}}};
}
constexpr DeclaredRoute kDeclared[] = {
    {"GET", "/clients", declared("listClients")},
    {"POST", "/clients", declared("createClient")},
    {"DELETE", "/clients/{id}", declared("deleteClient")},
    {"PUT", "/clients/{id}/secret", declared("setClientSecret")},
    {"GET", "/account/subscriptions", declared("listSubscriptions")},
    {"POST", "/admin/trace-sampler", declared("setTraceSampler")},
    {"GET", "/oauth/oidc/providers", declared("listOidcProviders")},
    {"POST", "/oauth/oidc/providers", declared("createOidcProvider")},
    {"POST", "/oauth/oidc/providers/reload", declared("reloadOidcProviders")},
    {"PATCH", "/oauth/oidc/providers/{id}", declared("updateOidcProvider")},
    {"DELETE", "/oauth/oidc/providers/{id}", declared("deleteOidcProvider")},
    {"POST", "/oauth/oidc/providers/{id}/invalidate", declared("invalidateOidcProvider")},
    {"POST", "/oauth/oidc/providers/{id}/reactivate", declared("reactivateOidcProvider")},
    {"GET", "/sql/schema/{rest...}", declared("getSqlSchema")},
    {"POST", "/sql/schema/{rest...}", declared("postSqlSchema")},
    {"PUT", "/sql/schema/{rest...}", declared("putSqlSchema")},
    {"DELETE", "/sql/schema/{rest...}", declared("deleteSqlSchema")},
    {"GET", "/platform-api/stream-data/{rest...}", declared("getStreamData")},
    {"POST", "/platform-api/stream-data/{rest...}", declared("postStreamData")},
    {"PUT", "/platform-api/stream-data/{rest...}", declared("putStreamData")},
    {"DELETE", "/platform-api/stream-data/{rest...}", declared("deleteStreamData")},
};

std::string_view level_now() {
  constexpr std::string_view names[] = {"debug", "info", "warn", "error", "off"};
  return names[static_cast<size_t>(pawl::log_level())];
}

Result<Bytes> get_log_level(HttpExchange&) {
  return json::print(json::object({{"level", level_now()}}));
}

// This server exports no traces.
Result<Bytes> get_trace_sampler(HttpExchange&) {
  return json::print(json::object({{"sampler", "never"}, {"ratio", 0}, {"parent_based", false}}));
}

Result<Bytes> set_log_level(HttpExchange& http) {
  TRY(wire::BodyReader body, http.body_object());
  TRY(std::string given, body.text(http::kLevel["level"]));
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

// The clients of a tenant. The scan reads those of all tenants, so it does not run on the thread of
// a request.
Result<json::Array> clients_of(HttpExchange& http, std::string_view tenant) {
  json::Array out;
  TRY_OK(
      http.service().kernel().snapshot().scan(clients_prefix(), [&](BytesView, const Cell& cell) {
        auto c = json::parse(cell.value());
        if (c && c->string_or("tenantId") == tenant)
          out.push_back(json::object({{"clientId", c->string_or("clientId")},
                                      {"tenantId", tenant},
                                      {"userId", c->string_or("userId")},
                                      {"roles", split_roles(c->string_or("roles"))}}));
        return true;
      }));
  return out;
}

Result<void> list_clients(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  return http->service().run_access(http->tenant(), [http] {
    auto clients = clients_of(*http, http->tenant());
    http->reply(clients ? Result<Bytes>(json::print(*clients)) : fail(std::move(clients.error())));
  });
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
  std::string tenant(body.value().string_or(http::kNewClient["tenantId"], http->tenant()));
  // The operator may create the first client of another tenant.
  if (tenant != http->tenant() && !http->is_operator())
    return fail(Code::denied, "FORBIDDEN", "clients can be made for your own tenant only");
  TRY(std::string user, body.text(http::kNewClient["userId"]));
  if (user.empty()) return bad_request("'userId' is required");
  if (user.size() > kNameBytes || tenant.size() > kNameBytes)
    return bad_request(fmt::format("'userId' and 'tenantId' have at most {} bytes", kNameBytes));
  TRY(std::string roles, join_roles(body.value().find(http::kNewClient["roles"])));
  std::string id = random_uuid(http->face.options().keys);
  json::Value client =
      json::object({{"clientId", id}, {"tenantId", tenant}, {"userId", user}, {"roles", roles}});
  return http->service().run_access(http->tenant(), [http, tenant, client = std::move(client)] {
    auto known = clients_of(*http, tenant);
    if (!known) return http->refuse(known.error());
    if (known->size() >= kMaxClients)
      return http->refuse(
          {Code::conflict, "M2M_CLIENT_CAP_REACHED",
           fmt::format("there are {} machine clients already; delete one first", known->size())});
    store_client(http, client, 201);
  });
}

Result<void> reset_secret(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  TRY(json::Value client, own_client(*http, http->param(0)));
  return http->service().run_access(
      http->tenant(), [http, client = std::move(client)] { store_client(http, client, 200); });
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
      "Whether the server is up.", http::kHealth, true);
  routes.add("GET", "/account", account, "The account of the caller.", http::kAccount);
  routes.add("GET", "/admin/log-level", get_log_level, "The log level of the server.",
             http::kGetLevel);
  routes.add("POST", "/admin/log-level", set_log_level,
             "Sets the log level until the server is restarted.", http::kSetLogLevel);
  routes.add("GET", "/admin/trace-sampler", get_trace_sampler, "Which traces are exported: none.",
             http::kGetSampler);
  routes.add_async("GET", "/account/m2m", list_clients, "The machine clients of the tenant.",
                   http::kListClients);
  routes.add_async("POST", "/account/m2m", new_client,
                   "Creates a machine client; its secret is shown once.", http::kNewClientOp);
  routes.add_async("DELETE", "/account/m2m/{id}", delete_client_route, "Deletes a machine client.",
                   http::kDeleteClient);
  routes.add_async("POST", "/account/m2m/{id}/secret/reset", reset_secret,
                   "Gives a machine client a new secret.", http::kResetSecret);
  for (const DeclaredRoute& row : kDeclared)
    routes.add(std::string(row.method), std::string(row.path), not_implemented,
               "Declared, not implemented: answers 501.", row.operation);
}

}  // namespace pawl::entities

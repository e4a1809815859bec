#include "faces/entities/face.h"

#include "base/hash.h"
#include "base/log.h"
#include "faces/entities/http/client_secret.h"
#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

bool is_loopback(std::string_view origin) {
  size_t scheme = origin.find("://");
  if (scheme == origin.npos) return false;
  std::string_view host = origin.substr(scheme + 3);
  if (host.starts_with("[::1]")) return true;
  host = host.substr(0, host.find(':'));
  return host == "localhost" || host == "127.0.0.1";
}

bool is_listed(std::string_view list, std::string_view origin) {
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view one = list.substr(0, comma);
    list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
    if (one == origin || one == "*") return true;
  }
  return false;
}

}  // namespace

Face::Face(KernelAccess& kernel, Background& background, FaceOptions options)
    : kernel_(kernel),
      options_(std::move(options)),
      members_(kernel, background, options_.members),
      counts_(kernel),
      service_(kernel, members_, counts_, background, options_.background_threads, options_.charge),
      result_streams_(background) {
  members_.start();
}

Face::~Face() { stop(); }

Result<void> Face::start() {
  TRY_OK(counts_.start());
  TRY_OK(service_.resume_filling_indexes());
  if (options_.keys.use_pair) {
    TRY_OK(kernel_.snapshot().scan(key_pairs_prefix(), [&](BytesView, const Cell& cell) {
      auto row = json::parse(cell.value());
      auto used = row ? options_.keys.use_pair(*row) : Result<void>();
      if (!used)
        log(pawl::Level::warn, "key pair not used",
            {{"kid", row->string_or("kid")}, {"why", used.error().message}});
      return true;
    }));
  }
  TRY_OK(put_bootstrap_client());
  if (!options_.keys.client_changed) return {};
  return kernel_.snapshot().scan(clients_prefix(), [&](BytesView, const Cell& cell) {
    if (auto client = json::parse(cell.value()))
      options_.keys.client_changed(client->string_or("clientId"), generation_of(*client));
    return true;
  });
}

Result<void> Face::put_bootstrap_client() {
  const auto& first = options_.bootstrap;
  if (first.client_id.empty()) return {};
  // The stored hash stays while the secret is the same: a new one would end the client's tokens.
  TRY(json::Value before, service_.cell_json(client_key(first.client_id)));
  std::string hash(before.string_or("secretHash"));
  // Without authentication there is no random source here, and nobody can log in either.
  const Bytes salt =
      options_.keys.secret ? options_.keys.secret() : Bytes(view(sha256(first.client_id)));
  if (!hash.starts_with("scrypt") || !is_client_secret(first.client_secret, hash))
    hash = hash_client_secret(first.client_secret, salt.substr(0, 16));
  json::Value client = json::object({{"clientId", first.client_id},
                                     {"secretHash", hash},
                                     {"tenantId", first.tenant},
                                     {"userId", first.user},
                                     {"roles", first.roles}});
  TRY_OK(service_.act_and_wait({.caller = {first.tenant, "system", ""}}, "client.put",
                               std::move(client)));
  return {};
}

void Face::stop() {
  result_streams_.stop();
  service_.stop();
  members_.stop();
  counts_.stop();
}

std::vector<wire::Route> Face::routes() {
  std::vector<wire::Route> out;
  RouteTable routes(*this, out);
  add_model_routes(routes);
  add_entity_routes(routes);
  add_collection_routes(routes);
  add_workflow_routes(routes);
  add_search_routes(routes);
  add_audit_routes(routes);
  add_message_routes(routes);
  add_account_routes(routes);
  add_token_routes(routes);
  add_key_routes(routes);
  add_help_routes(routes);
  add_stats_routes(routes);
  return out;
}

wire::Dialect Face::dialect() const {
  wire::Dialect dialect;
  dialect.prefix = options_.prefix + "/";
  dialect.refuse = [prefix = options_.prefix, verbose = options_.verbose_errors](
                       const wire::Request& request, const Error& error, std::string_view allow) {
    Error shown = error;
    if (!allow.empty()) shown.reason = "METHOD_NOT_ALLOWED";
    if (error.code == Code::unauthenticated)
      shown = {Code::unauthenticated, "UNAUTHORIZED", "authentication is required"};
    if (error.code == Code::too_large) {
      bool message = request.path.starts_with(prefix + "/message");
      shown = {Code::too_large, message ? "MESSAGE_TOO_LARGE" : "BAD_REQUEST",
               "failed to read body: it is larger than 10 MiB"};
    }
    wire::Response response = problem(request, shown, prefix, verbose);
    if (!allow.empty()) response.headers.emplace_back("Allow", allow);
    return response;
  };
  dialect.errors = {.shape = &http::kProblem, .media = http::kProblemJson, .tag = "entities"};
  if (!options_.cors) return dialect;
  dialect.cors = [origins = options_.cors_origins](std::string_view origin) {
    wire::Cors cors;
    cors.vary_origin = true;
    if (origin.empty() || (!is_loopback(origin) && !is_listed(origins, origin))) return cors;
    cors.allow_origin = origin;
    cors.methods = "GET, POST, PUT, PATCH, DELETE, OPTIONS";
    cors.headers = "Authorization, Content-Type, traceparent, tracestate";
    cors.max_age_seconds = 86400;
    return cors;
  };
  return dialect;
}

}  // namespace pawl::entities

#include "faces/entities/face.h"

#include <future>

#include "base/hash.h"
#include "base/log.h"
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

Face::Face(KernelAccess& kernel, FaceOptions options)
    : kernel_(kernel),
      options_(std::move(options)),
      members_(kernel, options_.members),
      counts_(kernel),
      background_(options_.background_threads),
      service_(kernel, members_, counts_, background_) {
  members_.start();
}

Face::~Face() { stop(); }

Result<void> Face::start() {
  TRY_OK(counts_.start());
  background_.start();
  TRY_OK(service_.resume_filling());
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
  const auto& first = options_.bootstrap;
  if (first.client_id.empty()) return {};
  std::promise<Result<Bytes>> promise;
  auto done = promise.get_future();
  json::Value client = json::object({{"clientId", first.client_id},
                                     {"secretHash", hex(view(sha256(first.client_secret)))},
                                     {"tenantId", first.tenant},
                                     {"userId", first.user},
                                     {"roles", first.roles}});
  service_.act({.caller = {first.tenant, "system", ""}}, "client.put", std::move(client),
               [&](Result<Bytes> answer) { promise.set_value(std::move(answer)); });
  TRY_OK(done.get());
  return {};
}

void Face::stop() {
  background_.stop();
  members_.stop();
  counts_.stop();
}

std::vector<wire::Route> Face::routes() {
  std::vector<wire::Route> out;
  Rows rows(*this, out);
  add_model_routes(rows);
  add_entity_routes(rows);
  add_collection_routes(rows);
  add_workflow_routes(rows);
  add_search_routes(rows);
  add_audit_routes(rows);
  add_message_routes(rows);
  add_account_routes(rows);
  add_token_routes(rows);
  add_key_routes(rows);
  add_help_routes(rows);
  add_stats_routes(rows);
  return out;
}

wire::Dialect Face::dialect() const {
  wire::Dialect dialect;
  dialect.prefix = options_.prefix + "/";
  dialect.refuse = [prefix = options_.prefix, verbose = options_.verbose_errors](
                       const wire::Request& request, const Error& error, std::string_view allow) {
    Error worded = error;
    if (!allow.empty()) worded.reason = "METHOD_NOT_ALLOWED";
    if (error.code == Code::unauthenticated)
      worded = {Code::unauthenticated, "UNAUTHORIZED", "authentication is required"};
    if (error.code == Code::too_large) {
      bool message = request.path.starts_with(prefix + "/message");
      worded = {Code::too_large, message ? "MESSAGE_TOO_LARGE" : "BAD_REQUEST",
                "failed to read body: it is larger than 10 MiB"};
    }
    wire::Response response = problem(request, worded, prefix, verbose);
    if (!allow.empty()) response.headers.emplace_back("Allow", allow);
    return response;
  };
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

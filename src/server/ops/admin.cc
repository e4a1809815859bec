// Health probes as Kubernetes expects them, and the metrics page.

#include "server/ops/admin.h"

#include <openssl/crypto.h>

namespace pawl::server {
namespace {

constexpr wire::RequestShape kChecksQuery{
    "", {wire::row::text("verbose", "With any value: name each part.").example(R"("1")")}};
constexpr wire::Operation kLive{
    .id = "getLiveness",
    .replies = {{200, "The process runs.", wire::Kind::octets, wire::kPlainText}}};
constexpr wire::Operation checking(std::string_view id) {
  return {.id = id,
          .query = &kChecksQuery,
          .replies = {{200, "Yes.", wire::Kind::octets, wire::kPlainText},
                      {503, "Not yet, or not any more.", wire::Kind::octets, wire::kPlainText}}};
}
constexpr wire::Operation kReady = checking("getReadiness");
constexpr wire::Operation kStarted = checking("getStartup");
constexpr wire::Operation kMetricsPage{
    .id = "getMetrics",
    .replies = {{200, "The metrics.", wire::Kind::octets, wire::kPlainText},
                {401, "A bearer token is required.", wire::Kind::octets, wire::kPlainText}}};

wire::Response answer_checks(const std::vector<AdminCheck>& checks, std::string_view good,
                             bool verbose) {
  std::string lines;
  bool all = true;
  for (const AdminCheck& check : checks) {
    Result<void> result = check.check();
    lines += result ? "[+] " + check.name + " ok\n"
                    : "[-] " + check.name + " failed: " + result.error().message + "\n";
    all = all && result;
  }
  std::string verdict = all ? std::string(good) : "not " + std::string(good);
  wire::Response response =
      wire::text_response(all ? 200 : 503, verbose ? lines + verdict : verdict);
  if (!all) response.headers.emplace_back("Retry-After", "1");
  return response;
}

wire::Handler checks_handler(std::vector<AdminCheck> checks, std::string good) {
  return [checks = std::move(checks), good = std::move(good)](wire::Request request,
                                                              wire::Respond respond) {
    respond(answer_checks(checks, good, request.query_param(kChecksQuery["verbose"]).has_value()));
  };
}

// Compares in constant time: the bearer is a secret.
bool bears(const wire::Request& request, std::string_view bearer) {
  std::string_view given = request.header("Authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (!given.starts_with(kScheme)) return false;
  given.remove_prefix(kScheme.size());
  return given.size() == bearer.size() &&
         CRYPTO_memcmp(given.data(), bearer.data(), bearer.size()) == 0;
}

}  // namespace

std::vector<wire::Route> admin_routes(const Metrics& metrics, AdminOptions options) {
  auto alive = [](wire::Request, wire::Respond respond) {
    respond(wire::text_response(200, "ok"));
  };
  auto page = [&metrics, bearer = std::move(options.metrics_bearer)](wire::Request request,
                                                                     wire::Respond respond) {
    if (!bearer.empty() && !bears(request, bearer)) {
      wire::Response refusal = wire::text_response(401, "unauthorized");
      refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
      return respond(std::move(refusal));
    }
    wire::Response response;
    response.headers.emplace_back("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    response.body = metrics.text();
    respond(std::move(response));
  };
  return {
      wire::open({"GET", "/livez", alive, "Answers 'ok' while the process runs.", &kLive}),
      wire::open({"GET", "/readyz", checks_handler(std::move(options.ready), "ready"),
                  "200 when every part can serve, else 503; ?verbose names the parts.", &kReady}),
      wire::open({"GET", "/startupz", checks_handler(std::move(options.started), "started"),
                  "200 once start-up is over, else 503.", &kStarted}),
      {"GET", "/metrics", page, "All metrics, as Prometheus text.", &kMetricsPage},
  };
}

}  // namespace pawl::server

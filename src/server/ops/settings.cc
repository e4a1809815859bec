// The table of the server's settings. docs/reference/server.md is printed from it.

#include <fmt/format.h>

#include "base/caller.h"
#include "server/ops/config.h"

namespace pawl::server {
namespace {

namespace v = values;

// Flag, TOML key, variable, second variable, type, default, documentation.
constexpr Setting kSettings[] = {
    {"data", "data", "PAWL_DATA", "", v::path("DIR"), "./data",
     "folder of the journal and the rows"},
    {"http", "http", "PAWL_HTTP", "CYODA_HTTP_PORT", v::address(), "127.0.0.1:8080",
     "address of the HTTP API and the console"},
    {"grpc", "grpc", "PAWL_GRPC", "CYODA_GRPC_PORT", v::address(), "127.0.0.1:9090",
     "address of the gRPC API"},
    {"admin", "admin", "PAWL_ADMIN", "CYODA_ADMIN_PORT", v::address(), "127.0.0.1:9091",
     "address of health probes and metrics"},
    {"threads", "threads", "PAWL_THREADS", "", v::number("N"), "2", "I/O threads of the HTTP API"},
    {"connections", "connections", "PAWL_CONNECTIONS", "", v::number("N"), "10000",
     "maximum number of open HTTP connections; further ones get 503 with Retry-After"},
    {"memory-budget", "memory_budget", "PAWL_MEMORY_BUDGET", "", v::bytes(), "0",
     "memory for request bodies, unread answers and unread streams together, such as 256MiB; what "
     "does not fit is refused with Retry-After; 0 means a quarter of the machine's memory"},
    {"tenant-max-open-turns", "tenant.max_open_turns", "PAWL_TENANT_MAX_OPEN_TURNS", "",
     v::number("N"), "2500",
     "maximum number of turns of one tenant that wait for a receipt; further requests get 429; 0 "
     "means no limit beyond 10000 for all tenants together"},
    {"tenant-max-queued-inputs", "tenant.max_queued_inputs", "PAWL_TENANT_MAX_QUEUED_INPUTS", "",
     v::number("N"), "25000",
     "maximum number of requests of one tenant that wait for the kernel; further ones get 429; 0 "
     "means no limit beyond 100000 for all tenants together"},
    {"tenant-max-connections", "tenant.max_connections", "PAWL_TENANT_MAX_CONNECTIONS", "",
     v::number("N"), "5000",
     "maximum number of open connections whose last authenticated request was of one tenant; a "
     "request on a further one gets 429 (gRPC: RESOURCE_EXHAUSTED); 0 means no limit beyond "
     "--connections"},
    {"tenant-max-streams", "tenant.max_streams", "PAWL_TENANT_MAX_STREAMS", "", v::number("N"),
     "2000",
     "maximum number of open streams of one tenant: event streams, WebSockets and gRPC streams "
     "together; further ones get 429; 0 means no limit"},
    {"tenant-max-jobs", "tenant.max_jobs", "PAWL_TENANT_MAX_JOBS", "", v::number("N"), "50000",
     "maximum number of jobs of one tenant that workers have leased and not finished; a poll for "
     "more gets 429; 0 means no limit"},
    {"tenant-max-requests", "tenant.max_requests", "PAWL_TENANT_MAX_REQUESTS", "", v::number("N"),
     "0",
     "maximum number of requests of one tenant in a second; further ones get 429; 0 means no "
     "limit: "
     "tenants share the kernel fairly without one"},
    {"tenant-max-bytes", "tenant.max_bytes", "PAWL_TENANT_MAX_BYTES", "", v::bytes(), "0",
     "maximum number of bytes that one tenant stores, approximately, such as 10GiB; further writes "
     "get 429, reads and deletions do not; 0 means no limit"},
    {"address-max-connections", "address.max_connections", "PAWL_ADDRESS_MAX_CONNECTIONS", "",
     v::number("N"), "1000",
     "under --auth jwt, maximum number of open HTTP connections of one client address that have "
     "not sent a valid token; further ones get 429; 0 means no limit"},
    {"address-max-requests", "address.max_requests", "PAWL_ADDRESS_MAX_REQUESTS", "",
     v::number("N"), "100",
     "under --auth jwt, maximum number of requests of one client address in a second without a "
     "valid token, with bursts of ten seconds; further ones get 429; 0 means no limit, for servers "
     "behind a proxy"},
    {"shards", "shards", "PAWL_SHARDS", "", v::number("N"), "0",
     "number of shards of a new data directory, 1 to 1024; it never changes. 0 means the number "
     "that the directory has, and 1 for a new one. More shards use more cores; experimental"},
    {"cell-cache", "cell_cache", "PAWL_CELL_CACHE", "", v::number("N"), "0",
     "memory for cached cells in MiB; 0 means half of --memory-budget, at most 512"},
    {"rows-cache", "rows_cache", "PAWL_ROWS_CACHE", "", v::number("N"), "64",
     "memory for cached blocks of the rows in MiB"},
    {"workflow-cells", "workflow_cells", "PAWL_WORKFLOW_CELLS", "AOS_CELL_CACHE_SIZE",
     v::number("N"), "4096",
     "maximum number of cached cells per workflow of a world; 0 means no limit beyond "
     "--cell-cache"},
    {"auth", "auth", "PAWL_AUTH", "CYODA_IAM_MODE", v::one_of("none|jwt|mock"), "none",
     "authentication: `none` trusts every caller, `jwt` requires a bearer token; `mock` is another "
     "word for `none`"},
    {"require-jwt", "require_jwt", "PAWL_REQUIRE_JWT", "CYODA_REQUIRE_JWT", v::boolean(), "false",
     "refuse to start unless --auth is jwt and there is a key that tokens are checked with"},
    {"insecure", "insecure", "PAWL_INSECURE", "", v::boolean(), "false",
     "allow --auth none on addresses that other machines can reach"},
    {"tenant", "none.tenant", "PAWL_TENANT", "", v::text("TEXT"), kDefaultTenant,
     "tenant of every caller under --auth none"},
    {"user", "none.user", "PAWL_USER", "", v::text("TEXT"), "mock-user-001",
     "user id of every caller under --auth none"},
    {"roles", "none.roles", "PAWL_ROLES", "CYODA_IAM_MOCK_ROLES", v::text("TEXT"),
     "ROLE_ADMIN,ROLE_M2M", "roles of every caller under --auth none"},
    {"tls-certificate", "tls.certificate", "PAWL_TLS_CERTIFICATE", "", v::text("FILE"), "",
     "PEM file with the certificate chain; turns TLS on for all listeners"},
    {"tls-key", "tls.key", "PAWL_TLS_KEY", "", v::text("FILE"), "",
     "PEM file with the certificate's private key"},
    {"jwt-key", "jwt.key", "PAWL_JWT_KEY", "CYODA_JWT_SIGNING_KEY", v::secret(), "",
     "RSA key that signs tokens: PEM, or base64 of PEM"},
    {"jwt-issuer", "jwt.issuer", "PAWL_JWT_ISSUER", "CYODA_JWT_ISSUER", v::text("TEXT"), "cyoda",
     "issuer that tokens must name"},
    {"jwt-audience", "jwt.audience", "PAWL_JWT_AUDIENCE", "CYODA_JWT_AUDIENCE", v::text("TEXT"), "",
     "audience that tokens must name; empty means any"},
    {"jwt-expiry", "jwt.expiry", "PAWL_JWT_EXPIRY", "CYODA_JWT_EXPIRY_SECONDS", v::duration(),
     "3600s", "lifetime of issued tokens"},
    {"jwt-jwks", "jwt.jwks", "PAWL_JWT_JWKS", "", v::text("FILE"), "",
     "JWKS file with the public keys of external token issuers"},
    {"jwt-old-key", "jwt.old_key", "PAWL_JWT_OLD_KEY", "", v::secret(), "",
     "the --jwt-key before this one: still verifies its tokens and opens its key pairs, signs "
     "nothing; keep it for --jwt-expiry after a change of the key"},
    {"auth-issuer", "auth_issuer.url", "PAWL_AUTH_ISSUER", "", v::text("URL"), "",
     "OpenID provider whose tokens are accepted: the `iss` of its tokens; its keys are found by "
     "discovery below this URL"},
    {"auth-jwks-url", "auth_issuer.jwks_url", "PAWL_AUTH_JWKS_URL", "", v::text("URL"), "",
     "where the keys of --auth-issuer are; empty means discovery"},
    {"auth-refresh", "auth_issuer.refresh", "PAWL_AUTH_REFRESH", "", v::duration(), "300s",
     "how often the keys of --auth-issuer are fetched, at least 10 s"},
    {"bootstrap-client", "bootstrap.client", "PAWL_BOOTSTRAP_CLIENT_ID",
     "CYODA_BOOTSTRAP_CLIENT_ID", v::text("TEXT"), "",
     "id of the bootstrap client, the first machine client; empty means none"},
    {"bootstrap-secret", "bootstrap.secret", "PAWL_BOOTSTRAP_CLIENT_SECRET",
     "CYODA_BOOTSTRAP_CLIENT_SECRET", v::secret(), "", "secret of the bootstrap client"},
    {"bootstrap-tenant", "bootstrap.tenant", "PAWL_BOOTSTRAP_TENANT_ID",
     "CYODA_BOOTSTRAP_TENANT_ID", v::text("TEXT"), "default-tenant",
     "tenant of the bootstrap client"},
    {"bootstrap-user", "bootstrap.user", "PAWL_BOOTSTRAP_USER_ID", "CYODA_BOOTSTRAP_USER_ID",
     v::text("TEXT"), "admin", "user id of the bootstrap client"},
    {"bootstrap-roles", "bootstrap.roles", "PAWL_BOOTSTRAP_ROLES", "CYODA_BOOTSTRAP_ROLES",
     v::text("TEXT"), "ROLE_ADMIN,ROLE_M2M", "roles of the bootstrap client"},
    {"operator-tenant", "operator_tenant", "PAWL_OPERATOR_TENANT", "", v::text("TEXT"), "",
     "tenant whose operators and admins operate the server under --auth jwt: admin address, log "
     "level, clients of other tenants; empty means the tenant of the bootstrap client"},
    {"context-path", "entities.context_path", "PAWL_CONTEXT_PATH", "CYODA_CONTEXT_PATH",
     v::text("TEXT"), "/api", "path prefix of the entities API"},
    {"max-state-visits", "entities.max_state_visits", "PAWL_MAX_STATE_VISITS",
     "CYODA_MAX_STATE_VISITS", v::number("N"), "10",
     "maximum number of visits to one state in one cascade of transitions"},
    {"validate-results", "entities.validate_results", "PAWL_VALIDATE_RESULTS", "", v::boolean(),
     "false",
     "check every document that a processor returns against the model; false checks only those of "
     "processors with validateResult"},
    {"dispatch-wait", "entities.dispatch_wait", "PAWL_DISPATCH_WAIT", "CYODA_DISPATCH_WAIT_TIMEOUT",
     v::duration(), "0s", "how long a call waits for a compute member to join"},
    {"keepalive-interval", "entities.keepalive_interval", "PAWL_KEEPALIVE_INTERVAL",
     "CYODA_KEEPALIVE_INTERVAL", v::duration(), "10s",
     "interval between keep-alive messages to compute members"},
    {"keepalive-timeout", "entities.keepalive_timeout", "PAWL_KEEPALIVE_TIMEOUT",
     "CYODA_KEEPALIVE_TIMEOUT", v::duration(), "30s",
     "silence after which a compute member counts as gone"},
    {"strict-leases", "processes.strict_leases", "PAWL_STRICT_LEASES", "", v::boolean(), "false",
     "refuse the result of a job from a worker that does not hold its lease; without it the first "
     "result counts, whoever sends it"},
    {"lifecycle-websocket", "lifecycle.websocket", "PAWL_LIFECYCLE_WEBSOCKET", "", v::boolean(),
     "true", "offer watches over WebSocket; Server-Sent Events are always offered"},
    {"lifecycle-origins", "lifecycle.origins", "PAWL_LIFECYCLE_ORIGINS", "", v::text("TEXT"), "",
     "web sites that may open a watch over WebSocket: a comma list of origins; when it is set, a "
     "client that sends no origin is refused"},
    {"worlds-http-allow", "worlds.http_allow", "PAWL_WORLDS_HTTP_ALLOW", "", v::text("TEXT"), "",
     "hosts that worlds may reach with sys/http.request: a comma list of host, host:port or "
     "*.host"},
    {"worlds-http-timeout", "worlds.http_timeout", "PAWL_WORLDS_HTTP_TIMEOUT", "", v::duration(),
     "30s", "time limit of one sys/http.request, from its start to the end of the answer"},
    {"worlds-env-allow", "worlds.env_allow", "PAWL_WORLDS_ENV_ALLOW", "", v::text("TEXT"), "",
     "variables of the server's environment that worlds may bind as secrets: a comma list of "
     "TENANT:NAME, or *:NAME for every tenant; the server's own variables are never allowed"},
    {"worlds-secret-key", "worlds.secret_key", "PAWL_WORLDS_SECRET_KEY", "", v::secret(), "",
     "key that encrypts the secrets of worlds: 64 hex digits; empty allows only bindings to "
     "variables"},
    {"error-mode", "entities.error_mode", "PAWL_ERROR_MODE", "CYODA_ERROR_RESPONSE_MODE",
     v::one_of("sanitized|verbose"), "sanitized",
     "detail in the bodies of 5xx answers: `sanitized` gives a ticket id, `verbose` the cause"},
    {"allowed-hosts", "allowed_hosts", "PAWL_ALLOWED_HOSTS", "", v::text("TEXT"), "",
     "names by which clients address this server besides loopback names and IP addresses: a comma "
     "list of name, *.name or *"},
    {"allowed-origins", "allowed_origins", "PAWL_ALLOWED_ORIGINS", "", v::text("TEXT"), "",
     "web sites whose pages may call this server from a browser: a comma list of origins such as "
     "https://app.example, or * for all; empty means none"},
    {"cors", "cors.enabled", "PAWL_CORS", "CYODA_CORS_ENABLED", v::boolean(), "true",
     "let the web sites of --allowed-origins call; false refuses them as well"},
    {"cors-origins", "cors.origins", "PAWL_CORS_ORIGINS", "CYODA_CORS_ALLOWED_ORIGINS",
     v::text("TEXT"), "", "further origins, as in --allowed-origins"},
    {"metrics-bearer", "metrics_bearer", "PAWL_METRICS_BEARER", "CYODA_METRICS_BEARER", v::secret(),
     "", "bearer token that /metrics requires instead of an operator's; empty means none"},
    {"metrics-open", "metrics_open", "PAWL_METRICS_OPEN", "", v::boolean(), "false",
     "answer /metrics without a token, also under --auth jwt"},
    {"backup-dir", "backup_dir", "PAWL_BACKUP_DIR", "", v::text("DIR"), "",
     "folder below which POST /backup writes; empty means `backups` in the data folder"},
    {"log-level", "log.level", "PAWL_LOG_LEVEL", "CYODA_LOG_LEVEL",
     v::one_of("debug|info|warn|error|off"), "info",
     "least severe level that is logged: debug, info, warn, error or off"},
    {"log-format", "log.format", "PAWL_LOG_FORMAT", "", v::one_of("json|text|auto"), "auto",
     "format of log lines: json, text, or auto, which is text on a terminal"},
    {"log-requests", "log.requests", "PAWL_LOG_REQUESTS", "", v::boolean(), "false",
     "log a line for every HTTP request"},
};

}  // namespace

std::span<const Setting> settings() { return kSettings; }

std::string settings_reference() {
  std::string out = "| flag | TOML key | variables | default | meaning |\n|---|---|---|---|---|\n";
  for (const Setting& setting : settings()) {
    std::string variables = fmt::format("`{}`", setting.variable);
    if (!setting.alias.empty()) variables += fmt::format(", `{}`", setting.alias);
    std::string shown =
        setting.default_value.empty() ? "" : fmt::format("`{}`", setting.default_value);
    out += fmt::format("| `--{}` | `{}` | {} | {} | {} |\n", setting.flag, setting.key, variables,
                       shown, setting.doc);
  }
  return out;
}

}  // namespace pawl::server

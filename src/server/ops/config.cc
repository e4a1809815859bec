// The table of settings and where their values come from.

#include "server/ops/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/caller.h"
#include "server/http/address.h"

namespace pawl::server {

const std::vector<Setting>& settings() {
  using enum SettingKind;
  static const std::vector<Setting> table = {
      {"data",
       "data",
       "PAWL_DATA",
       {},
       text,
       "./data",
       "the folder that holds the journal and the rows"},
      {"shards",
       "shards",
       "PAWL_SHARDS",
       {},
       number,
       "1",
       "shards of a new data folder; fixed once it is made"},
      {"http",
       "http",
       "PAWL_HTTP",
       {"CYODA_HTTP_PORT"},
       address,
       "127.0.0.1:8080",
       "address of the HTTP API and the console"},
      {"grpc",
       "grpc",
       "PAWL_GRPC",
       {"CYODA_GRPC_PORT"},
       address,
       "127.0.0.1:9090",
       "address of the gRPC API"},
      {"admin",
       "admin",
       "PAWL_ADMIN",
       {"CYODA_ADMIN_PORT"},
       address,
       "127.0.0.1:9091",
       "address of health probes and metrics"},
      {"threads", "threads", "PAWL_THREADS", {}, number, "2", "I/O threads of the HTTP API"},
      {"connections",
       "connections",
       "PAWL_CONNECTIONS",
       {},
       number,
       "10000",
       "HTTP connections at once; more are told to come back"},
      {"cell-cache",
       "cell_cache",
       "PAWL_CELL_CACHE",
       {},
       number,
       "0",
       "MiB of cells that are kept in memory, others are read from the rows; 0: an eighth of the "
       "machine's memory, at most 512"},
      {"rows-cache",
       "rows_cache",
       "PAWL_ROWS_CACHE",
       {},
       number,
       "64",
       "MiB of the rows that are kept in memory as they are stored, for cells that are not at "
       "hand"},
      {"workflow-cells",
       "workflow_cells",
       "PAWL_WORKFLOW_CELLS",
       {"AOS_CELL_CACHE_SIZE"},
       number,
       "4096",
       "clean cells of one workflow of one world that are at hand, the least recently used are "
       "packed first; 0: bounded by bytes alone"},
      {"auth",
       "auth",
       "PAWL_AUTH",
       {"CYODA_IAM_MODE"},
       text,
       "none",
       "who is asked who they are: none (nobody), jwt (everyone)"},
      {"insecure",
       "insecure",
       "PAWL_INSECURE",
       {},
       boolean,
       "false",
       "allow --auth none on addresses that other machines reach"},
      {"tenant",
       "none.tenant",
       "PAWL_TENANT",
       {},
       text,
       kDefaultTenant,
       "the tenant of everyone under --auth none"},
      {"user",
       "none.user",
       "PAWL_USER",
       {},
       text,
       "mock-user-001",
       "the user that everyone is under --auth none"},
      {"roles",
       "none.roles",
       "PAWL_ROLES",
       {"CYODA_IAM_MOCK_ROLES"},
       text,
       "ROLE_ADMIN,ROLE_M2M",
       "the roles of everyone under --auth none"},
      {"tls-certificate",
       "tls.certificate",
       "PAWL_TLS_CERTIFICATE",
       {},
       text,
       "",
       "PEM file of the certificate chain; turns TLS on for HTTP and gRPC"},
      {"tls-key", "tls.key", "PAWL_TLS_KEY", {}, text, "", "PEM file of the certificate's key"},
      {"jwt-key",
       "jwt.key",
       "PAWL_JWT_KEY",
       {"CYODA_JWT_SIGNING_KEY"},
       secret,
       "",
       "RSA key that signs tokens: PEM, or base64 of PEM"},
      {"jwt-issuer",
       "jwt.issuer",
       "PAWL_JWT_ISSUER",
       {"CYODA_JWT_ISSUER"},
       text,
       "cyoda",
       "the issuer that tokens must name"},
      {"jwt-audience",
       "jwt.audience",
       "PAWL_JWT_AUDIENCE",
       {"CYODA_JWT_AUDIENCE"},
       text,
       "",
       "the audience that tokens must name; empty: not looked at"},
      {"jwt-expiry",
       "jwt.expiry",
       "PAWL_JWT_EXPIRY",
       {"CYODA_JWT_EXPIRY_SECONDS"},
       duration,
       "3600s",
       "how long issued tokens are good"},
      {"jwt-jwks",
       "jwt.jwks",
       "PAWL_JWT_JWKS",
       {},
       text,
       "",
       "JWKS file with the keys of others whose tokens are believed"},
      {"bootstrap-client",
       "bootstrap.client",
       "PAWL_BOOTSTRAP_CLIENT_ID",
       {"CYODA_BOOTSTRAP_CLIENT_ID"},
       text,
       "",
       "id of the first machine client; empty: none"},
      {"bootstrap-secret",
       "bootstrap.secret",
       "PAWL_BOOTSTRAP_CLIENT_SECRET",
       {"CYODA_BOOTSTRAP_CLIENT_SECRET"},
       secret,
       "",
       "its secret"},
      {"bootstrap-tenant",
       "bootstrap.tenant",
       "PAWL_BOOTSTRAP_TENANT_ID",
       {"CYODA_BOOTSTRAP_TENANT_ID"},
       text,
       "default-tenant",
       "its tenant"},
      {"bootstrap-user",
       "bootstrap.user",
       "PAWL_BOOTSTRAP_USER_ID",
       {"CYODA_BOOTSTRAP_USER_ID"},
       text,
       "admin",
       "its user"},
      {"bootstrap-roles",
       "bootstrap.roles",
       "PAWL_BOOTSTRAP_ROLES",
       {"CYODA_BOOTSTRAP_ROLES"},
       text,
       "ROLE_ADMIN,ROLE_M2M",
       "its roles"},
      {"context-path",
       "entities.context_path",
       "PAWL_CONTEXT_PATH",
       {"CYODA_CONTEXT_PATH"},
       text,
       "/api",
       "path prefix of the entities API"},
      {"max-state-visits",
       "entities.max_state_visits",
       "PAWL_MAX_STATE_VISITS",
       {"CYODA_MAX_STATE_VISITS"},
       number,
       "10",
       "visits of one state in one cascade"},
      {"dispatch-wait",
       "entities.dispatch_wait",
       "PAWL_DISPATCH_WAIT",
       {"CYODA_DISPATCH_WAIT_TIMEOUT"},
       duration,
       "0s",
       "how long a call waits for a compute member to join"},
      {"keepalive-interval",
       "entities.keepalive_interval",
       "PAWL_KEEPALIVE_INTERVAL",
       {"CYODA_KEEPALIVE_INTERVAL"},
       duration,
       "10s",
       "how often compute members are asked for a sign of life"},
      {"keepalive-timeout",
       "entities.keepalive_timeout",
       "PAWL_KEEPALIVE_TIMEOUT",
       {"CYODA_KEEPALIVE_TIMEOUT"},
       duration,
       "30s",
       "silence after which a compute member is gone"},
      {"lifecycle-websocket",
       "lifecycle.websocket",
       "PAWL_LIFECYCLE_WEBSOCKET",
       {},
       boolean,
       "true",
       "watch instances by WebSocket; Server-Sent Events are always there"},
      {"lifecycle-origins",
       "lifecycle.origins",
       "PAWL_LIFECYCLE_ORIGINS",
       {},
       text,
       "",
       "origins that may open a watch by WebSocket: a comma list; empty: all"},
      {"worlds-http-allow",
       "worlds.http_allow",
       "PAWL_WORLDS_HTTP_ALLOW",
       {},
       text,
       "",
       "what worlds may reach with sys/http.request: a comma list of host, host:port or *.host"},
      {"worlds-http-timeout",
       "worlds.http_timeout",
       "PAWL_WORLDS_HTTP_TIMEOUT",
       {},
       duration,
       "30s",
       "how long sys/http.request waits for an answer, whole"},
      {"worlds-secret-key",
       "worlds.secret_key",
       "PAWL_WORLDS_SECRET_KEY",
       {},
       secret,
       "",
       "64 hex digits that seal the secrets of worlds; empty: only env: bindings"},
      {"error-mode",
       "entities.error_mode",
       "PAWL_ERROR_MODE",
       {"CYODA_ERROR_RESPONSE_MODE"},
       text,
       "sanitized",
       "what 5xx bodies tell: sanitized or verbose"},
      {"cors",
       "cors.enabled",
       "PAWL_CORS",
       {"CYODA_CORS_ENABLED"},
       boolean,
       "true",
       "answer browsers from other origins"},
      {"cors-origins",
       "cors.origins",
       "PAWL_CORS_ORIGINS",
       {"CYODA_CORS_ALLOWED_ORIGINS"},
       text,
       "",
       "origins of the entities API besides loopback: a comma list, or *"},
      {"metrics-bearer",
       "metrics_bearer",
       "PAWL_METRICS_BEARER",
       {"CYODA_METRICS_BEARER"},
       secret,
       "",
       "token that /metrics wants; empty: none"},
      {"log-level",
       "log.level",
       "PAWL_LOG_LEVEL",
       {"CYODA_LOG_LEVEL"},
       text,
       "info",
       "debug, info, warn, error or off"},
      {"log-format",
       "log.format",
       "PAWL_LOG_FORMAT",
       {},
       text,
       "auto",
       "json, text, or auto: text on a terminal"},
      {"log-requests",
       "log.requests",
       "PAWL_LOG_REQUESTS",
       {},
       boolean,
       "false",
       "a log line for every HTTP request"},
  };
  return table;
}

namespace {

const Setting* find_setting(std::string_view name, std::string_view Setting::*column) {
  for (const Setting& setting : settings()) {
    if (setting.*column == name) return &setting;
  }
  return nullptr;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearest(std::string_view name, std::string_view Setting::*column) {
  auto distance = [&](const Setting& setting) { return edit_distance(name, setting.*column); };
  auto best = std::min_element(
      settings().begin(), settings().end(),
      [&](const Setting& a, const Setting& b) { return distance(a) < distance(b); });
  return (*best).*column;
}

std::unexpected<Error> bad(const Setting& setting, std::string_view source, std::string_view value,
                           std::string_view wanted) {
  std::string shown = setting.kind == SettingKind::secret ? "***" : std::string(value);
  return fail(
      Code::invalid, "BAD_SETTING",
      fmt::format("{} (from {}) is '{}'; wanted is {}", setting.flag, source, shown, wanted));
}

std::optional<bool> to_boolean(std::string_view text) {
  for (std::string_view yes : {"true", "1", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"false", "0", "no", "off"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::optional<int64_t> to_number(std::string_view text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole =
      !text.empty() && error == std::errc() && end == text.data() + text.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

// The value in its normal form, or what was wanted.
Result<std::string> normal(const Setting& setting, std::string text, std::string_view source) {
  switch (setting.kind) {
    case SettingKind::text:
    case SettingKind::secret: return text;
    case SettingKind::number:
      if (!to_number(text)) return bad(setting, source, text, "a whole number");
      return text;
    case SettingKind::boolean:
      if (!to_boolean(text)) return bad(setting, source, text, "true or false");
      return std::string(*to_boolean(text) ? "true" : "false");
    case SettingKind::duration:
      if (!parse_setting_duration(text))
        return bad(setting, source, text, "a duration such as 500ms, 10s or 5m");
      return text;
    case SettingKind::address:
      if (to_number(text)) text = "127.0.0.1:" + text;
      if (!parse_address(text))
        return bad(setting, source, text, "an address such as 127.0.0.1:8080 or :8080");
      return text;
  }
  return text;
}

Result<std::string> read_secret(const std::string& path, std::string_view variable) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return fail(Code::invalid, "BAD_SETTING",
                fmt::format("{} names {}, which cannot be read", variable, path));
  std::ostringstream text;
  text << file.rdbuf();
  std::string out = text.str();
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r'))
    out.pop_back();
  return out;
}

struct Sourced {
  std::string text;
  std::string source;
};

Result<std::optional<Sourced>> from_variables(const Setting& setting,
                                              const ConfigSources& sources) {
  if (!sources.variable) return std::nullopt;
  std::vector<std::string_view> names{setting.variable};
  names.insert(names.end(), setting.aliases.begin(), setting.aliases.end());
  for (std::string_view view : names) {
    std::string name(view);
    if (auto text = sources.variable(name)) return Sourced{*std::move(text), name};
    if (setting.kind != SettingKind::secret) continue;
    name += "_FILE";
    if (auto path = sources.variable(name)) {
      TRY(std::string text, read_secret(*path, name));
      return Sourced{std::move(text), name};
    }
  }
  return std::nullopt;
}

Result<std::string> toml_text(const toml::node& node, std::string_view key) {
  if (auto text = node.value_exact<std::string>()) return *text;
  if (auto number = node.value_exact<int64_t>()) return std::to_string(*number);
  if (auto flag = node.value_exact<bool>()) return std::string(*flag ? "true" : "false");
  if (const toml::array* array = node.as_array()) {
    std::string out;
    for (const toml::node& item : *array) {
      TRY(std::string text, toml_text(item, key));
      out += (out.empty() ? "" : ",") + text;
    }
    return out;
  }
  return fail(Code::invalid, "BAD_SETTING",
              fmt::format("the key {} of the configuration file must be a text, a whole number, "
                          "true, false or a list",
                          key));
}

Result<void> gather(const toml::table& table, const std::string& prefix,
                    std::map<std::string, std::string>& out) {
  for (const auto& [name, node] : table) {
    std::string key = prefix + std::string(name.str());
    if (const toml::table* inner = node.as_table()) {
      TRY_OK(gather(*inner, key + ".", out));
      continue;
    }
    if (!find_setting(key, &Setting::key)) {
      return fail(Code::invalid, "UNKNOWN_SETTING",
                  fmt::format("the configuration file has no key '{}'; did you mean '{}'?", key,
                              nearest(key, &Setting::key)));
    }
    TRY(out[key], toml_text(node, key));
  }
  return {};
}

Result<std::map<std::string, std::string>> read_file(const std::string& path) {
  std::map<std::string, std::string> out;
  if (path.empty()) return out;
  toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    return fail(Code::invalid, "BAD_CONFIG",
                fmt::format("{}:{}: {}", path, parsed.error().source().begin.line,
                            parsed.error().description()));
  }
  TRY_OK(gather(parsed.table(), "", out));
  return out;
}

}  // namespace

Result<Time> parse_setting_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    Time size;
  };
  static constexpr Unit kUnits[] = {{"ms", kMillisecond},
                                    {"s", kSecond},
                                    {"m", 60 * kSecond},
                                    {"h", 3600 * kSecond},
                                    {"", kSecond}};
  if (text.starts_with('P')) {
    TRY(Duration duration, parse_duration(text));
    if (duration.months == 0 && duration.nanos >= 0) return duration.nanos;
  }
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    auto number = to_number(text.substr(0, text.size() - unit.name.size()));
    if (number && *number <= INT64_MAX / unit.size) return *number * unit.size;
  }
  return fail(Code::invalid, "BAD_DURATION",
              "'" + std::string(text) + "' is not a duration; write 500ms, 10s, 5m or 1h");
}

Result<Config> Config::load(const ConfigSources& sources) {
  TRY(auto file, read_file(sources.file));
  for (const auto& [flag, text] : sources.flags) {
    if (find_setting(flag, &Setting::flag)) continue;
    return fail(Code::invalid, "UNKNOWN_SETTING",
                fmt::format("there is no flag --{}; did you mean --{}?", flag,
                            nearest(flag, &Setting::flag)));
  }
  Config config;
  for (const Setting& setting : settings()) {
    Sourced found{std::string(setting.default_value), "default"};
    TRY(auto variable, from_variables(setting, sources));
    if (auto flag = sources.flags.find(std::string(setting.flag)); flag != sources.flags.end()) {
      found = {flag->second, "--" + flag->first};
    } else if (variable) {
      found = *std::move(variable);
    } else if (auto row = file.find(std::string(setting.key)); row != file.end()) {
      found = {row->second, sources.file};
    }
    TRY(std::string text, normal(setting, std::move(found.text), found.source));
    config.values_[std::string(setting.flag)] = {&setting, std::move(text),
                                                 std::move(found.source)};
  }
  return config;
}

const Config::Value& Config::find(std::string_view flag, SettingKind kind) const {
  auto found = values_.find(flag);
  CHECK(found != values_.end());
  CHECK(kind == SettingKind::text || found->second.setting->kind == kind);
  return found->second;
}

const std::string& Config::text(std::string_view flag) const {
  return find(flag, SettingKind::text).text;
}
int64_t Config::number(std::string_view flag) const {
  return *to_number(find(flag, SettingKind::number).text);
}
bool Config::boolean(std::string_view flag) const {
  return find(flag, SettingKind::boolean).text == "true";
}
Time Config::duration(std::string_view flag) const {
  return *parse_setting_duration(find(flag, SettingKind::duration).text);
}

std::string Config::print() const {
  std::string out;
  for (const Setting& setting : settings()) {
    const Value& value = values_.find(setting.flag)->second;
    bool hidden = setting.kind == SettingKind::secret && !value.text.empty();
    out +=
        fmt::format("{:<20} = {}  ({})\n", setting.flag, hidden ? "***" : value.text, value.source);
  }
  return out;
}

Result<std::map<std::string, std::string>> take_flags(std::vector<std::string>& args) {
  std::map<std::string, std::string> flags;
  std::vector<std::string> rest;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string_view arg = args[i];
    size_t equals = arg.find('=');
    const Setting* setting =
        arg.starts_with("--")
            ? find_setting(arg.substr(2, equals == std::string_view::npos ? equals : equals - 2),
                           &Setting::flag)
            : nullptr;
    if (!setting) {
      rest.push_back(args[i]);
      continue;
    }
    std::string& value = flags[std::string(setting->flag)];
    if (equals != std::string_view::npos) {
      value = arg.substr(equals + 1);
    } else if (setting->kind == SettingKind::boolean) {
      value = "true";
    } else if (i + 1 < args.size()) {
      value = args[++i];
    } else {
      return fail(Code::invalid, "BAD_SETTING",
                  fmt::format("--{} wants a value: {}", setting->flag, setting->doc));
    }
  }
  args = std::move(rest);
  return flags;
}

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::string settings_help() {
  std::string out;
  for (const Setting& setting : settings()) {
    std::string shown =
        setting.default_value.empty() ? "" : fmt::format(" [{}]", setting.default_value);
    out += fmt::format("  --{:<20} {}{}\n", setting.flag, setting.doc, shown);
  }
  return out;
}

std::string settings_reference() {
  std::string out = "| flag | TOML key | variables | default | meaning |\n|---|---|---|---|---|\n";
  for (const Setting& setting : settings()) {
    std::string variables = fmt::format("`{}`", setting.variable);
    for (std::string_view alias : setting.aliases)
      variables += fmt::format(", `{}`", alias);
    std::string shown =
        setting.default_value.empty() ? "" : fmt::format("`{}`", setting.default_value);
    out += fmt::format("| `--{}` | `{}` | {} | {} | {} |\n", setting.flag, setting.key, variables,
                       shown, setting.doc);
  }
  return out;
}

}  // namespace pawl::server

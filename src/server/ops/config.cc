// Loads the settings from flags, variables, the file and the defaults.

#include "server/ops/config.h"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace pawl::server {

namespace {

const Setting* find_setting(std::string_view name, std::string_view Setting::*column) {
  for (const Setting& setting : settings()) {
    if (setting.*column == name) return &setting;
  }
  return nullptr;
}

std::vector<std::string_view> names_of_settings(std::string_view Setting::*column) {
  std::vector<std::string_view> names;
  for (const Setting& setting : settings())
    names.push_back(setting.*column);
  return names;
}

// Returns the value in its normal form. A refusal names the source of the value.
Result<std::string> checked(const Setting& setting, const std::string& text,
                            std::string_view source) {
  if (auto value = normal_value(setting.type, text)) return *std::move(value);
  std::string shown = setting.type.kind == ValueKind::secret ? "***" : text;
  return fail(Code::invalid, "BAD_SETTING",
              fmt::format("{} (from {}) is '{}'; allowed: {}", setting.flag, source, shown,
                          allowed_values(setting.type)));
}

Result<std::string> read_secret(const std::string& path, std::string_view variable) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return fail(Code::invalid, "BAD_SETTING",
                fmt::format("{} names the file {}, which cannot be read", variable, path));
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
  for (std::string_view variable : {setting.variable, setting.alias}) {
    if (variable.empty()) continue;
    std::string name(variable);
    if (auto text = sources.variable(name)) return Sourced{*std::move(text), name};
    if (setting.type.kind != ValueKind::secret) continue;
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
                  fmt::format("the configuration file has an unknown key '{}'{}", key,
                              suggestion(key, names_of_settings(&Setting::key))));
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

Result<Config> Config::load(const ConfigSources& sources) {
  TRY(auto file, read_file(sources.file));
  for (const auto& [flag, text] : sources.flags) {
    if (find_setting(flag, &Setting::flag)) continue;
    return fail(Code::invalid, "UNKNOWN_SETTING",
                fmt::format("there is no flag --{}{}", flag,
                            suggestion(flag, names_of_settings(&Setting::flag), "--")));
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
    TRY(std::string text, checked(setting, found.text, found.source));
    config.values_[std::string(setting.flag)] = {&setting, std::move(text),
                                                 std::move(found.source)};
  }
  return config;
}

const Config::Value& Config::find(std::string_view flag) const {
  auto found = values_.find(flag);
  CHECK(found != values_.end());
  return found->second;
}

const Config::Value& Config::find(std::string_view flag, ValueKind kind) const {
  const Value& value = find(flag);
  CHECK(value.setting->type.kind == kind);
  return value;
}

const std::string& Config::text(std::string_view flag) const { return find(flag).text; }

int64_t Config::number(std::string_view flag) const {
  return *parse_whole_number(find(flag, ValueKind::number).text);
}

bool Config::boolean(std::string_view flag) const {
  return find(flag, ValueKind::boolean).text == "true";
}

size_t Config::bytes(std::string_view flag) const {
  return *parse_bytes(find(flag, ValueKind::bytes).text);
}

Time Config::duration(std::string_view flag) const {
  return *parse_setting_duration(find(flag, ValueKind::duration).text);
}

std::vector<std::string> Config::list(std::string_view flag) const {
  std::vector<std::string> out;
  std::string_view left = text(flag);
  while (!left.empty()) {
    size_t comma = left.find(',');
    std::string_view part = left.substr(0, comma);
    left = comma == std::string_view::npos ? std::string_view() : left.substr(comma + 1);
    size_t first = part.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    out.emplace_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
  }
  return out;
}

std::string Config::print() const {
  std::string out;
  for (const Setting& setting : settings()) {
    const Value& value = values_.find(setting.flag)->second;
    bool hidden = setting.type.kind == ValueKind::secret && !value.text.empty();
    out +=
        fmt::format("{:<20} = {}  ({})\n", setting.flag, hidden ? "***" : value.text, value.source);
  }
  return out;
}

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::optional<std::string> allowed_variable(const std::vector<std::string>& allowed,
                                            std::string_view tenant, const std::string& name) {
  if (name.empty() || name.starts_with("PAWL_") || name.starts_with("CYODA_")) return std::nullopt;
  for (std::string_view item : allowed) {
    const size_t colon = item.rfind(':');
    if (colon == std::string_view::npos || item.substr(colon + 1) != name) continue;
    if (item.substr(0, colon) == tenant || item.substr(0, colon) == "*") return environment(name);
  }
  return std::nullopt;
}

void forget_secret_variables() {
  for (const Setting& setting : settings()) {
    if (setting.type.kind != ValueKind::secret) continue;
    for (std::string_view variable : {setting.variable, setting.alias}) {
      const std::string name(variable);
      char* value = name.empty() ? nullptr : std::getenv(name.c_str());
      if (!value) continue;
      std::fill_n(value, std::strlen(value), '\0');  // unsetenv leaves the bytes where they are
      ::unsetenv(name.c_str());
    }
  }
}

}  // namespace pawl::server

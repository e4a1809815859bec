#pragma once
// The settings of the server. Each has a flag, a TOML key, variables, a default and documentation.
// A flag wins over a variable, a variable over the file, the file over the default.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "server/ops/value.h"

namespace pawl::server {

struct Setting {
  std::string_view flag;      // without the dashes; also the name in code
  std::string_view key;       // of the TOML file, dotted
  std::string_view variable;  // PAWL_...; a secret may also come from the file named by NAME_FILE
  std::string_view alias;     // a second variable of the same meaning, or empty
  ValueType type;
  std::string_view default_value;
  std::string_view doc;
};
std::span<const Setting> settings();

struct ConfigSources {
  std::map<std::string, std::string> flags{};  // by flag
  std::function<std::optional<std::string>(const std::string&)> variable{};
  std::string file{};  // path of a TOML file; empty: none
};

class Config {
 public:
  static Result<Config> load(const ConfigSources& sources);

  // Values by flag. Naming a flag that is not in the table, or is of another kind, is a bug.
  const std::string& text(std::string_view flag) const;
  int64_t number(std::string_view flag) const;
  bool boolean(std::string_view flag) const;
  size_t bytes(std::string_view flag) const;
  Time duration(std::string_view flag) const;
  // The parts of a comma list, without the spaces around them and without empty parts.
  std::vector<std::string> list(std::string_view flag) const;

  // One line a setting, "http = 127.0.0.1:8080  (default)". Secrets are hidden.
  std::string print() const;

 private:
  struct Value {
    const Setting* setting;
    std::string text;
    std::string source;
  };
  const Value& find(std::string_view flag) const;
  const Value& find(std::string_view flag, ValueKind kind) const;
  std::map<std::string, Value, std::less<>> values_;
};

std::optional<std::string> environment(const std::string& name);  // of this process
// A variable that the tenant may read. `allowed` has items TENANT:NAME; the tenant * is everybody.
// The server's own variables (PAWL_..., CYODA_...) are never returned.
std::optional<std::string> allowed_variable(const std::vector<std::string>& allowed,
                                            std::string_view tenant, const std::string& name);
// Removes the variables that hold secret settings, also from the memory that other processes of
// this user can read. Call once the settings are loaded and before threads start.
void forget_secret_variables();
std::string settings_reference();  // the table in Markdown, for docs/reference

}  // namespace pawl::server

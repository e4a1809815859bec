#pragma once
// Every setting of the server in one table: flag, TOML key, variables, default, documentation. A
// flag wins over a variable, a variable over the file, the file over the default.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace pawl::server {

enum class SettingKind {
  text,
  number,    // whole, not negative
  boolean,   // true, false, 1, 0, yes, no, on, off; a bare flag is true
  duration,  // 500ms, 10s, 5m, 1h, a bare number of seconds, or ISO 8601
  address,   // 127.0.0.1:8080; a bare port is on 127.0.0.1
  secret,    // text that is never shown; each variable also as NAME_FILE
};

struct Setting {
  std::string_view flag;      // without the dashes; also the name in code
  std::string_view key;       // of the TOML file, dotted
  std::string_view variable;  // PAWL_...
  std::vector<std::string_view> aliases;
  SettingKind kind;
  std::string_view default_value;  // the default
  std::string_view doc;
};
const std::vector<Setting>& settings();

struct ConfigSources {
  std::map<std::string, std::string> flags{};  // by flag
  std::function<std::optional<std::string>(const std::string&)> variable{};
  std::string file{};  // path of a TOML file; empty: none
};

class Config {
 public:
  static Result<Config> load(const ConfigSources& sources);

  // By flag; naming one that is not in the table, or of another kind, is a bug.
  const std::string& text(std::string_view flag) const;
  int64_t number(std::string_view flag) const;
  bool boolean(std::string_view flag) const;
  Time duration(std::string_view flag) const;

  // "http = 127.0.0.1:8080  (default)": a line a setting, secrets hidden.
  std::string print() const;

 private:
  struct Value {
    const Setting* setting;
    std::string text;
    std::string source;
  };
  const Value& find(std::string_view flag, SettingKind kind) const;
  std::map<std::string, Value, std::less<>> values_;
};

// Takes the flags of the table off `args` ("--http :8080", "--http=:8080", "--insecure"), leaving
// the rest in order. A flag without its value is an error.
Result<std::map<std::string, std::string>> take_flags(std::vector<std::string>& args);

std::optional<std::string> environment(const std::string& name);  // of this process
std::string settings_help();                                      // for --help
std::string settings_reference();  // the table in Markdown, for docs/reference
Result<Time> parse_setting_duration(std::string_view text);

}  // namespace pawl::server

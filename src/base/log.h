#pragma once
// Structured log lines on stderr: a message and named values, as JSON or as text for people.
//
// The log is the only process-wide state in the tree: a line may be needed anywhere below main, and
// passing a logger through every constructor would add nothing. Main sets it up once. Thread-safe.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pawl {

enum class Level { debug, info, warn, error, off };
enum class LogFormat { automatic, text, json };  // automatic: text on a terminal

Result<Level> parse_level(std::string_view name);
Result<LogFormat> parse_log_format(std::string_view name);

// The value of one field, kept as JSON text.
class LogValue {
 public:
  LogValue(std::string_view text);
  LogValue(const std::string& text) : LogValue(std::string_view(text)) {}
  LogValue(const char* text) : LogValue(std::string_view(text)) {}
  LogValue(bool value) : json_(value ? "true" : "false") {}
  LogValue(std::integral auto value) : json_(std::to_string(value)) {}
  LogValue(double value);
  const std::string& json() const { return json_; }

 private:
  std::string json_;
};
struct LogField {
  std::string_view name;
  LogValue value;
};

void log_setup(Level level, LogFormat format);
void log_level(Level level);  // may be changed at any time
Level log_level();
inline bool logs(Level level) { return level >= log_level(); }

// Writes the line with one call, so lines of several threads do not mix.
void log(Level level, std::string_view message, std::initializer_list<LogField> fields = {});

// Returns the line without writing it; `now` is in nanoseconds since 1970. For tests.
std::string log_line(LogFormat format, int64_t now, Level level, std::string_view message,
                     std::initializer_list<LogField> fields);

}  // namespace pawl

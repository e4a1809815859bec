#pragma once
// Structured log lines on stderr: a message and named values, as JSON or as text for people.
//
// The one process-wide thing of the house: a line may be needed anywhere below main, and a logger
// passed through every constructor would say nothing that this does not. Main sets it up once.

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

// A value of a line, already as JSON text.
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
void log_level(Level level);  // at run time
Level log_level();
inline bool logs(Level level) { return level >= log_level(); }

// One write of one line: lines of several threads do not mix.
void log(Level level, std::string_view message, std::initializer_list<LogField> fields = {});

// The line without writing it; `now` in nanoseconds since 1970. For tests and other sinks.
std::string log_line(LogFormat format, int64_t now, Level level, std::string_view message,
                     std::initializer_list<LogField> fields);

}  // namespace pawl

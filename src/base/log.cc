#include "base/log.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cmath>

#include "base/time.h"

namespace pawl {
namespace {

// The rows are in the order of the enum: name_of_level() uses the level as an index.
struct LevelName {
  Level level;
  std::string_view name;
};
constexpr LevelName kLevels[] = {{Level::debug, "debug"},
                                 {Level::info, "info"},
                                 {Level::warn, "warn"},
                                 {Level::error, "error"},
                                 {Level::off, "off"}};

struct FormatName {
  LogFormat format;
  std::string_view name;
};
constexpr FormatName kFormats[] = {
    {LogFormat::automatic, "auto"}, {LogFormat::text, "text"}, {LogFormat::json, "json"}};

// Both are initialised at compile time, so they are usable before and after main.
std::atomic<Level> g_level = Level::info;
std::atomic<LogFormat> g_format = LogFormat::automatic;

std::string_view name_of_level(Level level) { return kLevels[static_cast<size_t>(level)].name; }

// Appends a JSON string. It stands here because base may not include json; bytes from 0x80 on are
// written as they are, valid UTF-8 or not.
void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

}  // namespace

LogValue::LogValue(std::string_view text) { append_quoted(json_, text); }
LogValue::LogValue(double value)
    : json_(std::isfinite(value) ? fmt::format("{}", value) : "null") {}

Result<Level> parse_level(std::string_view name) {
  for (const auto& row : kLevels) {
    if (row.name == name) return row.level;
  }
  return fail(Code::invalid, "BAD_LEVEL",
              "'" + std::string(name) +
                  "' is not a log level; the levels are debug, info, warn, error, off");
}

Result<LogFormat> parse_log_format(std::string_view name) {
  for (const auto& row : kFormats) {
    if (row.name == name) return row.format;
  }
  return fail(Code::invalid, "BAD_LOG_FORMAT",
              "'" + std::string(name) + "' is not a log format; the formats are auto, text, json");
}

// Both values are atomic, so a level that changes while other threads log is safe.
void log_setup(Level level, LogFormat format) {
  g_level = level;
  g_format = format;
}

void log_level(Level level) { g_level = level; }
Level log_level() { return g_level.load(std::memory_order_relaxed); }

std::string log_line(LogFormat format, int64_t now, Level level, std::string_view message,
                     std::initializer_list<LogField> fields) {
  std::string line;
  if (format == LogFormat::text) {
    fmt::format_to(std::back_inserter(line), "{} {:<5} {}", rfc3339(now, 3, true),
                   name_of_level(level), message);
    for (const LogField& field : fields)
      fmt::format_to(std::back_inserter(line), " {}={}", field.name, field.value.json());
    // The message is not quoted, so a line break in it would look like a second log line.
    for (char& c : line) {
      if (c == '\n' || c == '\r') c = ' ';
    }
    line.push_back('\n');
    return line;
  }
  fmt::format_to(std::back_inserter(line), R"({{"time":"{}","level":"{}","message":)",
                 rfc3339(now, 6, true), name_of_level(level));
  append_quoted(line, message);
  for (const LogField& field : fields) {
    line.push_back(',');
    append_quoted(line, field.name);
    line.push_back(':');
    line += field.value.json();
  }
  line += "}\n";
  return line;
}

void log(Level level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!logs(level)) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  LogFormat format = g_format;
  if (format == LogFormat::automatic)
    format = isatty(STDERR_FILENO) ? LogFormat::text : LogFormat::json;
  std::string line = log_line(format, now.tv_sec * kSecond + now.tv_nsec, level, message, fields);
  // A failure to write is ignored: there is no other place to report it.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace pawl

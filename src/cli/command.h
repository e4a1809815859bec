#pragma once
// A command of `pawl` is a row with its name, its words, its flags, its documentation and its
// function. The parser, the help and the completion all read the row.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "server/ops/value.h"

namespace pawl::cli {

// The exit codes of `pawl`. Scripts rely on them.
enum Exit : int {
  kDone = 0,
  kFailed = 1,
  kBadUse = 2,
  kNotFound = 3,
  kConflict = 4,
  kUnreachable = 5,
  kDiffers = 6,
};

// Refusals of a command line; all of them end with kBadUse.
inline constexpr Reason kBadUsage{"BAD_USE"};
inline constexpr Reason kBadFlag{"BAD_FLAG"};
inline constexpr Reason kUnknownFlag{"UNKNOWN_FLAG"};

namespace v = server::values;

struct Flag {
  std::string_view name;   // without the dashes
  server::ValueType type;  // of its value; the parser refuses other values
  std::string_view doc;
};

struct Command;

// The words of a command line after the name of its command.
class Args {
 public:
  std::vector<std::string> words;  // those that belong to no flag, in order
  std::vector<std::string> rest;   // those after "--"
  bool has(std::string_view flag) const { return flags_.contains(flag); }
  // The value of a flag; of one that was given several times, the last.
  std::string get(std::string_view flag, std::string_view default_value = {}) const;
  int64_t number(std::string_view flag, int64_t default_value) const;
  double seconds(std::string_view flag, double default_value) const;
  std::vector<std::string> all(std::string_view flag) const;
  const std::multimap<std::string, std::string, std::less<>>& flags() const { return flags_; }
  bool json() const { return has("json"); }

  // Refuses unknown flags, values of another type, and words that the command does not take.
  static Result<Args> parse(const Command& command, std::span<const std::string> words);

 private:
  std::multimap<std::string, std::string, std::less<>> flags_;
};

inline constexpr size_t kMaxFlags = 16;  // of one row

struct Command {
  std::string_view name;  // "journal show"
  // The words that it takes: "INSTANCE [STEP]", "FILE..." for one or more, "-- PROGRAM".
  std::string_view words;
  std::string_view doc;
  Flag flags[kMaxFlags];  // unused places have no name
  // Returns the exit code. An error is printed and gives the exit code that fits it.
  Result<int> (*run)(const Args&);
  // Returns further flags, for a command whose flags are not all known at compile time.
  std::vector<Flag> (*more_flags)() = nullptr;

  std::vector<Flag> all_flags() const;
};

// The flags that every command takes.
std::span<const Flag> common_flags();

// Prints a value as JSON when --json was given, else runs `text`.
void show(const Args& args, const json::Value& value, const std::function<void()>& text);
int exit_code(const Error& error);

// Draws a progress bar on standard error while a long command runs. Draws nothing when standard
// error is not a terminal. The destructor erases the bar.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what) : what_(std::move(what)) {}
  ~ProgressLine();
  void update(uint64_t done, uint64_t total);

 private:
  std::string what_;
  int64_t begun_ns_ = 0;
  bool drawn_ = false;
};

// The tables of commands, by file.
std::span<const Command> server_commands();
std::span<const Command> data_commands();
std::span<const Command> quarantine_commands();
std::span<const Command> doctor_commands();
std::span<const Command> health_commands();
std::span<const Command> permission_commands();

}  // namespace pawl::cli

#pragma once
// One command of `pawl`: a row with its name, its flags, its documentation and the function that
// does it. Help, completion and the reference are printed from the rows.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace pawl::cli {

// What a script may rely on.
enum Exit : int {
  kDone = 0,
  kFailed = 1,
  kBadUse = 2,
  kNotFound = 3,
  kConflict = 4,
  kUnreachable = 5,
  kDiffers = 6,
};

// The value of a flag that may be written alone for true.
inline constexpr std::string_view kOnOff = "[=true|false]";

struct Flag {
  std::string_view name;   // without the dashes
  std::string_view value;  // what its value is, in capitals; empty for a switch
  std::string_view doc;
};

// The words of a command line after its command.
class Args {
 public:
  std::vector<std::string> words;  // what is no flag, in order
  std::vector<std::string> rest;   // what follows "--"
  bool has(std::string_view flag) const { return flags_.contains(flag); }
  std::string get(std::string_view flag, std::string_view default_value = {}) const;
  std::vector<std::string> all(std::string_view flag) const;
  const std::multimap<std::string, std::string, std::less<>>& flags() const { return flags_; }
  bool json() const { return has("json"); }

  static Result<Args> parse(std::span<const std::string> words, std::span<const Flag> known);

 private:
  std::multimap<std::string, std::string, std::less<>> flags_;
};

struct Command {
  std::string_view name;   // "journal show"
  std::string_view words;  // "[SEQ]"
  std::string_view doc;
  std::vector<Flag> flags;
  // Returns the exit code. An error is printed with its cause and next step, and gives the code
  // that fits it.
  std::function<Result<int>(const Args&)> run;
};

// Every command takes these.
std::span<const Flag> common_flags();

// Prints a value as JSON when --json was given, else runs `text`.
void show(const Args& args, const json::Value& value, const std::function<void()>& text);
int exit_code(const Error& error);

// A line that is drawn over itself on a terminal while something lasts, on standard error; nothing
// where that is no terminal. Ends with its destructor.
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

// The rows, by file.
std::vector<Command> server_commands();
std::vector<Command> data_commands();
std::vector<Command> doctor_commands();

}  // namespace pawl::cli

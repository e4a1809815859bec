#pragma once
// Runs another program to its end, with text in and text out. `pawl worker exec` uses it.

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace pawl::cli {

struct ChildResult {
  int code = -1;  // the exit code; 128 and the signal's number when a signal ended the program
  std::string out, err;
};

// Starts the program, writes `in` to its standard input and collects what it prints. `env` is added
// to the environment. Signals that arrive meanwhile do not end the program early.
Result<ChildResult> run_child(const std::vector<std::string>& command, const std::string& in,
                              const std::vector<std::pair<std::string, std::string>>& env);

}  // namespace pawl::cli

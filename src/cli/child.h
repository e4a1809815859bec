#pragma once
// Runs another program to its end, with text in and text out. `pawl worker exec` uses it.

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace pawl::cli {

struct ChildResult {
  int code = -1;  // the exit code; 128 and the signal's number when a signal ended the program
  std::string out, err;
};

// Starts the program, writes `in` to its standard input and collects what it prints. `env` is added
// to the environment. Signals that arrive meanwhile do not end the program early.
Result<ChildResult> run_child(const std::vector<std::string>& command, const std::string& in,
                              const std::vector<std::pair<std::string, std::string>>& env);

inline constexpr Reason kWorkerFailed{"WORKER_FAILED"};

// Runs the program as a worker of one job: the job's variables as JSON on its standard input, the
// result as a JSON object on its standard output; no output is an empty result. Error: invalid
// WORKER_FAILED when the program failed or printed something else.
Result<json::Object> run_job(const std::vector<std::string>& command, const json::Value& job);

}  // namespace pawl::cli

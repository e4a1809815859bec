#pragma once
// A dry run walks a definition with given variables and scripted results, and reports the path. It
// writes nothing.

#include "faces/processes/definition/definition.h"

namespace pawl::processes {

// `script` is {"step id": RESULT or [RESULT, ...]}, one RESULT for each visit; the last one
// repeats:
//   {"variables": {...}}                       the worker's, user's or signal's result
//   {"error": "text", "retryable": true}       the job fails
//   {"timer": 0}                               the step's timer of that index fires first
// A step without a script completes with no variables.
// The answer: {"status", "failureReason"?, "variables", "path": [{"stepId", "stepType", "status",
// ...}]}.
Result<std::string> dry_run(const Definition& definition, const json::Object& variables,
                            const json::Value& script, Time now);

}  // namespace pawl::processes

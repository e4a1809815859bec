#pragma once
// Lives plays a script of a process definition: it starts one instance for each life on a real
// server in a false world, and is their workers, people and signals until they have ended.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "expr/expression.h"
#include "sim/outside/life_dice.h"

namespace pawl::sim {

// Something that should not be. Equal ones of many lives are one finding of the report.
struct Problem {
  std::string kind;  // "invariant", "waits-for-ever", "refused-result"
  std::string what;
  auto operator<=>(const Problem&) const = default;
};

struct StoryLine {
  Time at;  // since the start of the life
  std::string text;
};

// What became of one life: the instance that was started, and all that it started itself.
struct LifeEnd {
  uint64_t life = 0;
  std::string status;  // of the first instance; "WAITING" when it waits for ever
  std::string reason;  // of a failure
  Time took = 0;
  std::set<Problem> problems;
  std::set<std::string> steps;     // "definition/step" that were entered
  std::set<std::string> branches;  // "definition/decision -> step"
  std::vector<StoryLine> story;
};

// Runs a real worker for a job and returns its variables; an error fails the job.
using RunWorker =
    std::function<Result<json::Object>(const std::string& program, const json::Value& job)>;

struct PlayOptions {
  uint64_t seed = 1;
  std::vector<uint64_t> lives{};
  bool crashes = true;
  RunWorker run_worker{};
};

// Plays the lives beside each other in one false world. Error: the server refuses a definition or
// the variables of a start.
Result<std::vector<LifeEnd>> play(const Script& script, const PlayOptions& options);

// All steps ("definition/step") and branches of the definitions.
std::set<std::string> all_steps(const Script& script);
std::set<std::string> all_branches(const Script& script);

}  // namespace pawl::sim

#pragma once
// play() plays the lives of a script on a real server in a false world: it starts one instance of a
// process, or creates one entity, for each life, and is their workers, members, people and signals
// until they have ended.

#include <functional>
#include <set>
#include <string>
#include <vector>

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

// What became of one life: an entity, or the instance that was started and all that it started.
struct LifeEnd {
  uint64_t life = 0;
  std::string status;  // of the first instance, or the entity's state; "WAITING": waits for ever
  std::string reason;  // of a failure
  Time took = 0;
  std::set<Problem> problems;
  std::set<std::string> steps;     // "definition/step" or "workflow/state" that were entered
  std::set<std::string> branches;  // "definition/decision -> step" or "workflow/state -> state"
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

// Adds all steps and branches that there are.
void add_facts(const Script& script, std::set<std::string>& steps, std::set<std::string>& branches);

}  // namespace pawl::sim

#pragma once
// play() plays the lives of a script on a real server in a false world: it starts one instance of a
// process, creates one entity, or creates one world, for each life, and is their workers, members,
// executors, people and signals until they have ended.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/outside/life_dice.h"

namespace pawl::sim {

// Something that should not be. Equal ones of many lives are one finding of the report.
struct Problem {
  // "invariant", "invariant-fails", "waits-for-ever", "refused-result", "step-failed"
  std::string kind;
  std::string what;
  auto operator<=>(const Problem&) const = default;
};

// A part of what is simulated that lives may reach, for example {"step", "definition/step"} or
// {"branch", "definition/decision -> step"}. The kinds are listed in report.cc.
struct Part {
  std::string kind, name;
  auto operator<=>(const Part&) const = default;
};

struct StoryLine {
  Time at = 0;  // since the start of the life
  std::string text;
};

// What became of one life: an entity, a world, or the instance that was started and all that it
// started.
struct LifeEnd {
  uint64_t life = 0;
  // Of the first instance, or the entity's state, or ENDED or FAILED for a world. "WAITING": waits
  // for ever.
  std::string status;
  std::string reason;  // of a failure
  Time took = 0;
  std::set<Problem> problems;
  std::set<Part> reached;
  std::map<std::string, uint64_t> cells;  // of a world: how many ended how
  // How often each invariant could be evaluated.
  std::map<std::string, uint64_t> checked;
  // Invariants that could not be, because a variable was missing, with the error.
  std::map<std::string, std::string> unchecked;
  std::vector<StoryLine> story;
};
// For another process of the same run.
Bytes encode(const LifeEnd& end);
Result<LifeEnd> decode_life_end(BytesView bytes);

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

// All parts that there are. Each comes with the part that is reported in its place when both are
// never reached, such as the step that a branch leads to; its kind is empty for none.
using AllParts = std::map<Part, Part>;
AllParts parts_of(const Script& script);

}  // namespace pawl::sim

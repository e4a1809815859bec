#pragma once
// The report of `pawl simulate`: plays the lives of a script and says what they showed, with one
// short story for each finding.

#include <map>

#include "sim/outside/lives.h"

namespace pawl::sim {

// The reason of the error for an invariant that is no expression, or that no life can evaluate.
inline constexpr Reason kBadInvariant{"BAD_INVARIANT"};

struct Finding {
  Problem problem;
  uint64_t lives = 0;          // that showed it; 0: it is about all lives together
  uint64_t life = 0;           // whose story is told
  bool needs_crashes = false;  // the life shows it only with its crash
  std::vector<StoryLine> story{};
};

// How many parts of a kind there are, and how many of them some life reached.
struct Reached {
  size_t all = 0, reached = 0;
};

// An invariant that could not be evaluated at some moment, because a variable was missing.
struct Unchecked {
  uint64_t lives = 0;
  std::string why;
};

struct Report {
  std::string definition;
  uint64_t seed = 0, lives = 0;
  std::map<std::string, uint64_t> ends;        // lives by the status of their end
  std::map<std::string, uint64_t> failures;    // lives by the reason of their failure
  std::map<std::string, uint64_t> cells;       // of worlds: cells by how they ended
  std::map<std::string, Unchecked> unchecked;  // by the invariant
  Time p50 = 0, p90 = 0, p99 = 0, max = 0;     // of the lives that ended
  std::map<std::string, Reached> parts;        // by their kind
  std::vector<std::string> not_in_script;  // job types, tasks, signals, effects answered by default
  std::vector<Finding> findings;
  std::vector<StoryLine> story;  // of one life that was played alone
};

struct SimulateOptions {
  uint64_t seed = 1;
  std::optional<uint64_t> only_life{};  // plays this life alone and tells its story
  bool crashes = true;
  size_t processes = 1;  // the report does not depend on it
  RunWorker run_worker{};
  std::function<void(uint64_t done, uint64_t all)> progress{};
};

Result<Report> simulate(const Script& script, const SimulateOptions& options);

// `command` replays the run: "pawl simulate loan.json --seed 1".
std::string report_text(const Report& report, const std::string& command);
json::Value report_json(const Report& report, const std::string& command);
std::string report_junit(const Report& report, const std::string& command);

}  // namespace pawl::sim

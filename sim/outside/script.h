#pragma once
// A script says what the outside of a user's definition does: how workers answer jobs, people
// complete tasks and signals come, and what must always hold. `pawl simulate` plays it. The format
// is described in docs/guide/simulate.md.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "json/value.h"

namespace pawl::sim {

// A length of time between two bounds. Its logarithm is uniform, so that short and long ones both
// happen.
struct TimeRange {
  Time low = kSecond;
  Time high = 10 * kSecond;
};

// A value that is chosen with a weight.
struct Choice {
  json::Object value;
  double weight = 1;
};

// What the outside does with one job type, user task, signal, event or effect. Shares are between 0
// and 1.
struct Behaviour {
  std::vector<Choice> results;  // empty: no variables
  TimeRange takes;
  double fails = 0;       // jobs: a failure is reported
  bool retryable = true;  // of such a failure
  std::string message = "a failure of the simulated worker";
  double dies = 0;      // jobs, effects: the worker is never heard of again
  double late = 0;      // jobs: the answer comes after the lease ended
  double twice = 0;     // the answer comes twice
  double never = 0;     // tasks, signals and events: nobody comes
  bool early = false;   // signals: the time counts from the start, and the signal is kept
  double matches = 1;   // criteria
  std::string program;  // jobs: a real worker, from --worker
};

// A world as `pawl world build` makes it.
struct WorldSource {
  std::string name;
  json::Value document;                    // {manifest, nodes}, with all hashes
  json::Value limits{};                    // null: the server's
  std::map<std::string, Bytes> modules{};  // by name, in WASM
};

// An event that a world gets: its schema, and one of the values when it comes.
struct WorldEvent {
  std::string schema;
  Behaviour behaviour;
};

// A script is about process definitions, about the workflows of one entity model, or about a world.
struct Script {
  std::vector<json::Value> definitions;  // the first one is started
  std::vector<Choice> starts;            // variables, or documents of entities
  json::Value start_schema;              // null: the definition's inputSchema
  std::map<std::string, Behaviour> jobs, tasks, signals;
  json::Value workflow;      // as it is imported; null: the script is about processes
  json::Value model_sample;  // null: the first document
  std::string model_name = "entity";
  int64_t model_version = 1;
  std::map<std::string, Behaviour> processors, criteria, transitions;
  std::optional<WorldSource> world;
  std::vector<WorldEvent> events;
  std::map<std::string, Behaviour> effects;  // by name
  double crashes = 0.1;                      // lives in which the server is killed once
  std::vector<std::string> invariants;
  std::vector<std::string> may_be_unreached;  // steps that are no finding when nobody reaches them
  bool may_wait = false;                      // an instance that waits for ever is no finding
  uint64_t lives = 1000;
  Time horizon = 90 * 24 * 3600 * kSecond;  // a life that has not ended by then waits for ever
};

// Reads what the script names: a file, or the folder of a world, whose modules are built.
struct ScriptFiles {
  std::function<Result<json::Value>(const std::string& path)> read_file;
  std::function<Result<WorldSource>(const std::string& path)> read_world;
};
// Refuses unknown members and bad values; the message names the place.
Result<Script> read_script(const json::Value& document, const ScriptFiles& files);

// "1s", "10m", "2h", "3d", "500ms" or ISO 8601; months have 30 days.
Result<Time> parse_span(std::string_view text);

}  // namespace pawl::sim

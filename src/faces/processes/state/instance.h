#pragma once
// An instance is one run of a definition: its tokens, variables and outcome, in one cell. A token
// marks a step that is active. A scope is one pass through a gateway whose branches have not all
// reached the join.

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "faces/processes/definition/definition.h"
#include "json/value.h"

namespace pawl::processes {

// The name of the program in inputs, effects and keys.
inline constexpr std::string_view kProgram = "processes";

// The numbers are stored and equal those of the gRPC enum.
enum class Status : uint8_t { active = 1, waiting, completed, failed, cancelled };
std::string_view status_name(Status status);
std::optional<Status> find_status(std::string_view name);
inline bool is_final(Status s) { return s >= Status::completed; }

// Variables and their JSON text, which is made once for each change. Jobs, frames and answers use
// it.
struct Variables {
  json::Object object;
  std::string text = "{}";
};
// Shared by successive versions of an instance.
using VariablesPtr = std::shared_ptr<const Variables>;
VariablesPtr make_variables(json::Object object);

enum class TokenState : uint8_t {
  running = 1,  // its step waits for a worker, a person, a signal or a join
  held,         // waits before its step because the instance is paused or failed
  failed,       // its step failed; an operator may retry it
  stuck,        // its step is done and names no next step
};

// The branch of a token that a non-interrupting timer started. It does not count as the arrival of
// the branch at the join.
inline constexpr uint32_t kNoBranch = UINT32_MAX;

// A WAIT that is registered for signals of a name and correlation key.
struct Subscription {
  std::string name, key;
  Time since = 0;  // the longest wait is served first
};

struct Token {
  uint32_t step = 0;
  TokenState state = TokenState::running;
  uint32_t execution = 0;  // ordinal; 0 when held
  uint32_t job = 0;        // ordinal of a SERVICE_TASK's job
  uint32_t tries = 0;      // failed attempts of the job so far
  uint32_t attempt = 0;    // how often the step was entered, this time included
  Time entered = 0;
  uint32_t scope = 0;   // 0: outside every gateway
  uint32_t branch = 0;  // in that scope, or kNoBranch
  struct ArmedTimer {
    uint32_t index;  // among the step's timers
    Time due;        // while the instance is suspended: the remaining time
  };
  std::vector<ArmedTimer> timers{};
  std::optional<LimitUse> limit{};  // the limit that the job is under
  // SERVICE_TASK with an attemptTimeout: how often a worker has taken the job, and when the open
  // timer of the current attempt is due (0: none is open).
  uint32_t leases = 0;
  Time attempt_due = 0;
  std::optional<Subscription> subscription{};  // WAIT with a signal, while the instance runs
  std::string child_id{};                      // CALL that waits: the instance it has started
};

struct Scope {
  uint32_t id = 0;
  uint32_t gateway = 0;
  uint32_t parent = 0, parent_branch = 0;
  std::vector<bool> arrived{};
};

struct Instance {
  std::string id;
  std::string definition_id;
  uint32_t version = 0;
  Status status = Status::active;
  bool paused = false;
  bool suspended = false;  // jobs and timers are withdrawn, because it is paused or has failed
  Time started = 0, updated = 0, completed = 0;
  // `failure` is the reason of FAILED or CANCELLED; next_id and previous_id link chained instances.
  std::string business_key, failure, next_id, previous_id;
  uint32_t ordinals = 0;  // the last ordinal of an execution or job
  uint32_t scope_ids = 0;
  // The priority and the key of all jobs of this instance: see Effect.
  int32_t priority = 0;
  std::string fairness_key;
  std::vector<Token> tokens;
  std::vector<Scope> scopes;
  std::vector<std::pair<uint32_t, uint32_t>> entries;  // step -> times entered, by step
  VariablesPtr variables;
  // Signals that came before their WAIT, oldest first.
  struct KeptSignal {
    uint32_t step = 0;
    VariablesPtr variables;
  };
  std::vector<KeptSignal> kept_signals;
  // The instance that called this one, its execution that waits for the end (0: none does), and
  // how many instances are above this one.
  std::string parent_id{};
  uint32_t parent_execution = 0, call_depth = 0;
  // The steps that are done and can be undone, in order. While `compensating` is true they are
  // undone from the last one on, and the only token stands at the compensation of the last one.
  struct DoneStep {
    uint32_t step = 0;
    std::string variables{};  // JSON text of the job; empty: those of the instance
  };
  std::vector<DoneStep> done_steps;
  bool compensating = false;
  std::string compensation_reason{};  // why the steps are undone

  // Counts one more entry of the step and returns the new count.
  uint32_t enter_count(uint32_t step);
  Scope* scope(uint32_t id);
};

// The step at which a token stands: while the instance is compensating, the step's compensation.
inline const Step& step_of(const Instance& instance, const Definition& definition, uint32_t step) {
  const Step& of = definition.steps[step];
  return instance.compensating && of.compensation ? *of.compensation : of;
}

// Stored times are distances from another time. Damaged bytes may overflow, so the sum wraps.
inline Time time_after(Time from, int64_t distance) {
  return static_cast<Time>(static_cast<uint64_t>(from) + static_cast<uint64_t>(distance));
}
Bytes encode(const Instance& instance);
// Error: corrupt BAD_INSTANCE_CELL.
Result<Instance> decode_instance(BytesView bytes);

// The id of an execution or job: the instance's id with the ordinal in its last four characters.
std::string ordinal_id(std::string_view instance_id, uint32_t ordinal);
// The instance and ordinal of an execution's or job's id; nothing when the id is malformed.
struct OrdinalId {
  std::string instance_id;
  uint32_t ordinal;
};
std::optional<OrdinalId> parse_ordinal_id(std::string_view id);
// A new instance id: a ULID whose ordinal is 0.
std::string instance_id_from(std::string ulid);

// The ids of the steps that have tokens, each once, in the order of the tokens.
std::vector<std::string> current_steps(const Instance& instance, const Definition& definition);
// The JSON of the public API.
std::string instance_json(const Instance& instance, const Definition& definition);
void append_time(std::string& out, Time t);  // quoted, to microseconds

}  // namespace pawl::processes

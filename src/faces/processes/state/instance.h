#pragma once
// An instance is one run of a definition: where its tokens stand, its variables, its outcome. It is
// one cell. A token is a place in the graph where something goes on; a scope is one pass through a
// gateway whose branches have not all met their join.

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "faces/processes/definition/definition.h"
#include "json/value.h"

namespace pawl::processes {

enum class Status : uint8_t { active = 1, waiting, completed, failed, cancelled };
std::string_view status_name(Status status);
std::optional<Status> find_status(std::string_view name);
inline bool is_final(Status s) { return s >= Status::completed; }

// Variables with their JSON text, which jobs, frames and answers all need: printed once a change.
struct Variables {
  json::Object object;
  std::string text = "{}";
};
using VariablesPtr =
    std::shared_ptr<const Variables>;  // shared by successive versions of an instance
VariablesPtr make_variables(json::Object object);

enum class TokenState : uint8_t {
  running = 1,  // its step waits for a worker, a person, a signal or a join
  held,         // stands before its step because the instance is paused
  failed,       // its step failed; an operator may retry it
  stuck,        // its step is done and names no next step
};

// The branch of a token that a timer started beside its step: none. The join waits for the branch
// itself.
inline constexpr uint32_t kBeside = UINT32_MAX;

struct Token {
  uint32_t step = 0;
  TokenState state = TokenState::running;
  uint32_t execution = 0;  // ordinal; 0 when held
  uint32_t job = 0;        // ordinal of a SERVICE_TASK's job
  uint32_t tries = 0;      // failed attempts of the job so far
  uint32_t attempt = 0;    // of the execution
  Time entered = 0;
  uint32_t scope = 0;   // 0: outside every gateway
  uint32_t branch = 0;  // in that scope, or kBeside
  struct Armed {
    uint32_t index;  // among the step's timers
    Time due;        // while the instance is quiet: what is left
  };
  std::vector<Armed> timers{};
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
  bool quiet = false;  // jobs and timers are withdrawn: paused, or failed
  Time started = 0, updated = 0, completed = 0;
  std::string business_key, failure, next_id, previous_id;
  uint32_t ordinals = 0;  // last given
  uint32_t scope_ids = 0;
  std::vector<Token> tokens;
  std::vector<Scope> scopes;
  std::vector<std::pair<uint32_t, uint32_t>> entries;  // step -> times entered, by step
  VariablesPtr variables;

  uint32_t enter_count(uint32_t step);  // counts one more
  Scope* scope(uint32_t id);
};

// A stored moment is a distance from another; of damaged bytes the sum may be anything.
inline Time moment(Time from, int64_t distance) {
  return static_cast<Time>(static_cast<uint64_t>(from) + static_cast<uint64_t>(distance));
}
Bytes encode(const Instance& instance);
Result<Instance> decode_instance(BytesView bytes);

// The instance's id with its last four characters counting executions and jobs.
std::string ordinal_id(std::string_view instance_id, uint32_t ordinal);
// The instance that an execution or job belongs to, and its number; nothing for malformed ids.
struct OrdinalId {
  std::string instance_id;
  uint32_t ordinal;
};
std::optional<OrdinalId> parse_ordinal_id(std::string_view id);
// A fresh instance id: a ULID that ends in ordinal 0.
std::string instance_id_from(std::string ulid);

// Ids of the steps where tokens stand, each once, in token order.
std::vector<std::string> current_steps(const Instance& instance, const Definition& definition);
// As callers see it.
std::string instance_json(const Instance& instance, const Definition& definition);
void append_time(std::string& out, Time t);  // quoted, to microseconds

}  // namespace pawl::processes

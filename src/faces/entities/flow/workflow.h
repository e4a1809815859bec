#pragma once
// A workflow is a finite state machine for the entities of one model. Its definition is JSON, which
// is checked and compiled at import and stored in the form in which it is exported.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "condition/condition.h"
#include "json/value.h"

namespace pawl::entities {

// When a processor is called and what becomes of its transaction: `sync` and `async_same_tx` run in
// the transaction, a failure of `async_new_tx` undoes only the processor's own writes, and
// `commit_before_dispatch` commits first and continues in a second transaction.
enum class Mode : uint8_t { sync, async_same_tx, async_new_tx, commit_before_dispatch };

struct Processor {
  std::string name;
  Mode mode = Mode::sync;
  std::string mode_text;       // as written; an unknown mode runs as SYNC
  std::string tags;            // comma-separated; the member must have all of them
  bool attach_entity = false;  // the request includes the document
  int64_t timeout_ms = 0;      // 0: the default
  std::string retry_policy;
  std::string context;           // passed to the member as "parameters"
  bool start_new_tx = false;     // after the commit, the call has a transaction that callbacks join
  bool durable = false;          // the call is sent again after a restart of the server
  bool validate_result = false;  // the returned document must fit the model
};

// When a transition fires by itself: after a delay, or at a time that a member chooses.
struct Schedule {
  int64_t delay_ms = 0;
  int64_t timeout_ms = -1;  // how late it may fire; -1: no limit
  std::optional<condition::Function> function;
};

struct Transition {
  std::string name;
  std::string next;
  bool manual = false;
  bool disabled = false;
  std::optional<condition::Condition> criterion;
  std::vector<Processor> processors;
  std::optional<Schedule> schedule;
  // The cascade fires it, not a request or a timer.
  bool automated() const { return !manual && !disabled && !schedule; }
  bool timed_by_member() const { return schedule && schedule->function && !disabled; }
};

struct Workflow {
  std::string name;
  std::string initial_state;
  bool active = true;
  std::optional<condition::Condition> criterion;
  std::map<std::string, std::vector<Transition>, std::less<>> states;

  bool has_state(std::string_view state) const { return states.find(state) != states.end(); }
  const std::vector<Transition>& transitions(std::string_view state) const;
  const Transition* find(std::string_view state, std::string_view transition) const;
};

// The workflows of a model, in stored order.
struct WorkflowSet {
  std::vector<Workflow> workflows;
  json::Array definitions;  // as exported, one for each workflow

  const Workflow* find(std::string_view name) const;
  // The first active workflow that has the state: the workflow of an existing entity.
  const Workflow* with_state(std::string_view state) const;
};

// The workflow of entities for which no stored workflow is active and matches.
const Workflow& default_workflow();

enum class ImportMode : uint8_t { merge, replace, activate };

// Returns the set to store after an import. Fails with BAD_REQUEST when the request has a wrong
// format, with VALIDATION_FAILED when a workflow could never run.
Result<WorkflowSet> import_workflows(const WorkflowSet& stored, const json::Value& request);
// Compiles stored definitions.
Result<WorkflowSet> load_workflows(const json::Array& definitions);

}  // namespace pawl::entities

#pragma once
// A workflow is a finite state machine for the entities of one model. Definitions come as JSON, are
// checked and compiled once, and are stored as they are exported.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "condition/condition.h"
#include "json/value.h"

namespace pawl::entities {

enum class Mode : uint8_t { sync, async_same_tx, async_new_tx, commit_before_dispatch };

struct Processor {
  std::string name;
  Mode mode = Mode::sync;
  std::string mode_text;  // as written; a mode that is not known runs as SYNC
  std::string tags;
  bool attach_entity = false;
  int64_t timeout_ms = 0;
  std::string retry_policy;
  std::string context;
  bool start_new_tx = false;
  bool durable = false;
};

// When a transition fires by itself: so long after the write, or when a member says.
struct Schedule {
  int64_t delay_ms = 0;
  int64_t timeout_ms = -1;  // how late it may still fire; -1: however late
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
  // Taken by the cascade, as opposed to by name or by the clock.
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

// All workflows of a model, in stored order.
struct Flows {
  std::vector<Workflow> workflows;
  json::Array definitions;  // as exported, one for each workflow

  const Workflow* named(std::string_view name) const;
  // The first active one that has the state; for an entity that already exists.
  const Workflow* holding(std::string_view state) const;
};

// Used when none is stored, or none is active and matches.
const Workflow& default_workflow();

enum class ImportMode : uint8_t { merge, replace, activate };

// The stored set after an import. BAD_REQUEST for what is not of the format, VALIDATION_FAILED for
// what can never run; either way nothing is stored.
Result<Flows> import_workflows(const Flows& stored, const json::Value& request);
// Reads the stored definitions again.
Result<Flows> load_workflows(const json::Array& definitions);

}  // namespace pawl::entities

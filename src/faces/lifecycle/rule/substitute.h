#pragma once
// Variables in the texts of rules: "$entity.id", "$message.path", "$now". A variable that cannot be
// resolved stays in the text and is reported, so that no caller stores one by accident.

#include <functional>

#include "faces/lifecycle/type/workflow_type.h"

namespace pawl::lifecycle {

// The type and phase of an entity that is an instance of a workflow.
struct ManagedEntity {
  WorkflowTypePtr type;
  std::string phase;
};

struct Variables {
  std::string entity_id;
  js::Value message, caller, schedule, state;
  Time now = 0;
  // Called at most once, when a variable needs it. Returns null when no workflow manages the
  // entity.
  std::function<std::shared_ptr<const ManagedEntity>()> lookup;

  // The work of these variables, and of others of the same turn that share it.
  std::shared_ptr<size_t> work = std::make_shared<size_t>(0);
  void charge(size_t bytes) { *work += bytes; }
  // invalid_rule once the turn has done more than limits::kRuleWork.
  Result<void> check_work() const;

  // "entity.lifecycle.phase" -> "flying"; nothing when the path cannot be resolved, or when there
  // was too much work.
  std::optional<js::Value> resolve(std::string_view path);

 private:
  const ManagedEntity* managed();
  bool looked_up_ = false;
  std::shared_ptr<const ManagedEntity> found_;
};

// Takes the members message, caller, schedule and state of a JSON object, where it has them.
void set_variables(Variables& variables, const js::Value& body);

struct Substituted {
  std::string text;
  std::string unresolved;  // the first variable that was not resolved; empty when all were
};
Substituted substitute(std::string_view text, Variables& variables);

// Returns the text with all variables resolved; else unresolved_template, or invalid_rule after too
// much work.
Result<std::string> resolved_text(std::string_view what, std::string_view text,
                                  Variables& variables);
// The same for every text inside a JSON value. A text that is one variable becomes the variable's
// value, whatever its JSON type.
Result<js::Value> resolved_value(std::string_view what, const js::Value& value,
                                 Variables& variables);

}  // namespace pawl::lifecycle

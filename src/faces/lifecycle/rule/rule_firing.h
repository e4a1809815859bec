#pragma once
// A firing runs the actions of a rule, or one action that a caller sent, for one instance. Actions
// have no more rights than an operator.

#include "faces/lifecycle/run/verbs.h"

namespace pawl::lifecycle {

struct RuleFiring {
  Turn& turn;
  std::string tenant;
  std::string workflow;  // the type of the instance; empty: found by the instance's id
  Variables variables;   // what the texts of the actions may name, with the instance's id
  std::string caller;    // the caller that the instance's history names
  uint64_t depth = 0;    // how many rules triggered one another before this one
};

// Sets the variables that are read from the turn. The lookup that it stores refers to `firing`,
// which must stay where it is and outlive its variables.
void prepare(RuleFiring& firing);

Result<Outcome> run_one_action(RuleFiring& firing, const js::Value& action);
// Checks the conditions and limits, runs every action even after one has failed, and writes the
// rule's cell. A failed action is taken back alone. Fails itself only when the type or the instance
// cannot be loaded or a required condition cannot be evaluated.
Result<Outcome> fire_rule(RuleFiring& firing, RuleCell& cell);

// Counts a firing of the rule for the instance, for the rule's limit and for $state. Returns false
// when the rule has reached its limit. The counts are in firing_counts.cc.
Result<bool> count_rule(RuleFiring& firing, const Rule& rule);
// Counts the firing of one action. Returns false when the action has reached its own limit.
Result<bool> count_action(RuleFiring& firing, const Rule& rule, size_t index);
// Makes the counts of a removed rule invalid and erases them page by page.
Result<void> drop_counts(Turn& turn, std::string_view tenant, std::string_view rule);

Result<std::optional<RuleCell>> read_rule(Turn& turn, std::string_view tenant,
                                          std::string_view name);

}  // namespace pawl::lifecycle

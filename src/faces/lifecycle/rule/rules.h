#pragma once
// A rule runs actions when an instance enters a phase or a schedule is due, and its conditions
// hold. Rules have no more rights than operators: the fields that they set must be
// operator_writable. Parsing (parse_rule) accepts all that was ever stored; checking (check_rule)
// is for new rules only.

#include "faces/lifecycle/rule/cron.h"
#include "faces/lifecycle/rule/substitute.h"
#include "faces/lifecycle/type/values.h"

namespace pawl::lifecycle {

struct Condition {
  std::string field;  // a field's name, or "$entity.lifecycle.phase"
  bool equal = true;
  js::Value wanted;
  bool required = false;  // when it cannot be evaluated, the rule fails instead of not firing
};

struct Rule {
  enum class On { phase, cron, every };
  std::string name, workflow;
  On on = On::phase;
  std::string on_text;  // the phase, the cron line, the interval
  std::vector<Condition> when;
  // The actions as JSON. Their texts hold variables, so they are read when the rule fires.
  js::Array then;
  uint64_t max_iterations = 0;  // maximum number of firings for one instance; 0: no limit
  bool enabled = true;
  // Firings are counted by instance: the rule has a limit, or its texts use $state.
  bool counted = false;
  js::Value body;  // as it was sent
};

// A rule's cell: the rule and its record of firings.
struct RuleCell {
  Rule rule;
  Seq version = 0;  // of the cell it was read from
  Time next = 0;    // when the schedule is due; 0: there is no schedule
  // `fired`: its conditions held. `failed`: an action failed, or the firing could not run at all.
  uint64_t fired = 0, failed = 0;
  Time last_fired = 0;
  std::string last_error;
};

inline std::unexpected<Error> bad_rule(std::string text) {
  return refuse(errc::invalid_rule, std::move(text));
}

Result<Rule> parse_rule(std::string_view name, const js::Value& body);
// Checks the rule against its type: its phases are declared, its fields are writable, and its
// literal values fit.
Result<void> check_rule(const Rule& rule, const WorkflowType& type);
Result<void> check_action(const js::Value& action);
// Refuse unknown members, and members that are not texts. They are separate from check_action()
// because rules that were stored before these checks existed must still be read.
Result<void> check_members(const js::Value& action);
Result<void> check_texts(const js::Value& action);
// Parses the conditions of a rule or of one of its actions.
Result<std::vector<Condition>> parse_when(const js::Value& value);

Key rule_key(std::string_view tenant, std::string_view name);
Key rule_prefix(std::string_view tenant);
Bytes encode(const RuleCell& cell);
Result<RuleCell> decode_rule(BytesView bytes);
js::Value rule_json(const RuleCell& cell);

// Returns the text without the white space around it.
std::string_view trimmed(std::string_view text);

// Nothing for rules that wait for a phase, are disabled, or whose time never comes.
std::optional<Time> next_firing(const Rule& rule, Time now);

// Whether every condition holds for this record. `type` is null when no workflow manages the
// entity.
Result<bool> holds(const std::vector<Condition>& when, const WorkflowType* type,
                   std::string_view record_bytes, Variables& variables);

// The new values of the fields that the `set` of an action names.
Result<FieldValues> apply_set(const js::Value& set, const WorkflowType& type,
                              std::string_view record_bytes, Variables& variables);
// The new value of one field. `bytes` is the record before; literals do not need it.
Result<value> set_value(const dynamic_type::field_def& f, const js::Value& given,
                        std::string_view record_bytes, Variables& variables);
Result<void> check_rule_writable(const WorkflowType& type, std::string_view field);

}  // namespace pawl::lifecycle

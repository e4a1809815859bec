#pragma once
// A rule: when an instance enters a phase, or a schedule fires, and the conditions hold, do these
// actions. Rules have no more rights than operators: what they set must be operator_writable.

#include "faces/lifecycle/rule/cron.h"
#include "faces/lifecycle/rule/substitute.h"
#include "faces/lifecycle/type/values.h"

namespace pawl::lifecycle {

struct Condition {
  std::string field;  // a field's name, or "$entity.lifecycle.phase"
  bool equal = true;
  js::Value wanted;
  bool required = false;  // where it cannot be evaluated: an error rather than false
};

struct Rule {
  enum class On { phase, cron, every };
  std::string name, workflow;
  On on = On::phase;
  std::string on_text;  // the phase, the cron line, the interval
  std::vector<Condition> when;
  js::Array then;
  uint64_t max_iterations = 0;  // firings for one instance; 0: no limit
  bool enabled = true;
  bool counted = false;  // its firings are counted by instance: for the limit, or for a text that
                         // tells the count
  js::Value body;        // as it was given
};

// What is known of a rule besides its text.
struct RuleCell {
  Rule rule;
  Seq version = 0;  // of the cell it was read from
  Time next = 0;    // when the open timer is due; 0: none
  uint64_t fired = 0, failed = 0;
  Time last_fired = 0;
  std::string last_error;
};

Result<Rule> parse_rule(std::string_view name, const js::Value& body);
// Against its type: phases declared, fields writable, literal values that fit.
Result<void> check_rule(const Rule& rule, const Type& type);
Result<void> check_action(const js::Value& action);
// No member is passed over, and its texts are texts. Apart from the rest: rules that were stored
// before this was asked can still be read.
Result<void> check_members(const js::Value& action);
Result<void> check_texts(const js::Value& action);
// The conditions of a rule or of one of its actions.
Result<std::vector<Condition>> parse_when(const js::Value& value);

Key rule_key(std::string_view tenant, std::string_view name);
Key rule_prefix(std::string_view tenant);
Bytes encode(const RuleCell& cell);
Result<RuleCell> decode_rule(BytesView bytes);
js::Value rule_json(const RuleCell& cell);

// Without the blanks around it.
std::string_view trimmed(std::string_view text);

std::optional<Time> next_firing(const Rule& rule, Time now);

// Whether every condition holds for this state; false where the entity is not managed.
Result<bool> holds(const std::vector<Condition>& when, const Type* type,
                   std::string_view record_bytes, Variables& variables);

// What the `set` of an action makes of a state: fields and their new values.
Result<Sets> apply_set(const js::Value& set, const Type& type, std::string_view record_bytes,
                       Variables& variables);
Result<void> check_rule_writable(const Type& type, std::string_view field);

}  // namespace pawl::lifecycle

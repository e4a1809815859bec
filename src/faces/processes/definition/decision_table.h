#pragma once
// Outputs and decision tables: the variables that a TRANSFORMATION or the rules of a table set.

#include "faces/processes/definition/definition.h"

namespace pawl::processes {

// A string of the form `${...}` is an expression; any other value is a literal.
// Never fails: a bad expression is a warning at upload and an error when it runs.
Output make_output(const std::string& name, const json::Value& value);
// Adds to `work` what the evaluation cost, in bytes made; the caller compares it with kWorkPerTurn.
Result<json::Value> evaluate(const Output& output, const json::Object& variables, Time now,
                             size_t& work);

std::optional<HitPolicy> find_hit_policy(std::string_view code);  // "" is U
std::string hit_policy_codes();

// Fails with WorkLimitReached when the expressions of this turn have used up their work. Called
// before each expression.
Result<void> check_work(size_t work);

// The approximate bytes of a value, which evaluating it adds to the work of the turn.
size_t value_bytes(const json::Value& value);

// The rules whose outputs the table uses, by their index. A pure function of the variables from
// before the step, so a rule that was chosen long ago can be found again.
Result<std::vector<size_t>> matching_rules(const Step& table, const json::Object& variables,
                                           Time now, size_t& work);

// The variables that the table sets. Errors have the names that the format defines, for example
// DecisionTableNoRuleMatched.
Result<json::Object> decide(const Step& table, const json::Object& variables, Time now,
                            size_t& work);

}  // namespace pawl::processes

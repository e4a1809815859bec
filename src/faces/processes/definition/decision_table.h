#pragma once
// Outputs and decision tables: what a TRANSFORMATION, and the rules of a table, give to variables.

#include "faces/processes/definition/definition.h"

namespace pawl::processes {

// A string that is `${...}` as a whole is an expression, anything else a literal.
Output make_output(const std::string& name, const json::Value& value);
Result<json::Value> evaluate(const Output& output, const json::Object& variables, Time now,
                             size_t& work);

std::optional<HitPolicy> find_hit_policy(std::string_view code);  // "" is U
std::string hit_policy_codes();

// Bytes of a value, roughly: what evaluating it adds to the turn's work.
size_t weight(const json::Value& value);

// The variables that the table sets, from the variables before the step. Errors carry the names
// that the format gives them: DecisionTableNoRuleMatched and so on.
Result<json::Object> decide(const Step& table, const json::Object& variables, Time now,
                            size_t& work);

}  // namespace pawl::processes

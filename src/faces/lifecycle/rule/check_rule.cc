// Checks a rule against its type when the rule is stored.

#include "faces/lifecycle/rule/rules.h"

#include <fmt/format.h>

#include "json/text.h"

namespace pawl::lifecycle {

namespace {

// Refuses unknown and mistyped members of a condition, which parse_when() ignores.
Result<void> check_when(const js::Value& when) {
  if (!when.is_array()) return {};
  for (const js::Value& condition : when.array())
    for (const auto& [name, member] : condition.object()) {
      bool fine = name == "value" || (name == "field" && member.is_string()) ||
                  (name == "operator" && member.is_string()) ||
                  (name == "required" && member.is_bool());
      if (!fine)
        return bad_rule(
            fmt::format("a condition has the unknown or mistyped member \"{}\"; known: field, "
                        "operator, value, required",
                        name));
    }
  return {};
}

Result<void> check_conditions(const std::vector<Condition>& when, const WorkflowType& type) {
  for (const Condition& c : when) {
    if (c.field.starts_with('$')) continue;
    const auto* f = type.def.find(c.field);
    if (!f)
      return refuse(errc::unknown_field,
                    fmt::format("'{}' in \"when\" is not a field of {}", c.field, type.def.name));
    // A condition that no value of the field can meet is a mistake of the author.
    TRY_OK(coerce(c.field, f->k, c.wanted));
  }
  return {};
}

// A literal value must fit its field. A value with variables is checked when the rule fires.
Result<void> check_set(const js::Value& set, const WorkflowType& type) {
  Variables none_given;
  for (const auto& [field_name, given] : set.object()) {
    TRY_OK(check_rule_writable(type, field_name));
    if (js::print(given).find('$') == std::string::npos) {
      TRY_OK(set_value(*type.def.find(field_name), given, {}, none_given));
    }
  }
  return {};
}

// A text with '$' is only known when the rule fires, and is checked then.
Result<void> check_in_type(const js::Value& action, const Rule& rule, const WorkflowType& type) {
  if (const js::Value* guard = action.find("when")) {
    TRY(std::vector<Condition> when, parse_when(*guard));
    TRY_OK(check_when(*guard));
    TRY_OK(check_conditions(when, type));
  }
  std::string_view to = trimmed(action.string_or("phase"));
  if (!to.empty() && to.find('$') == std::string_view::npos &&
      action.string_or("type") == "lifecycle_transition" && !type.def.declares(to))
    return refuse(errc::invalid_transition,
                  fmt::format("rule '{}' moves to phase '{}', which {} does not declare", rule.name,
                              to, type.def.name));
  if (const js::Value* set = action.find("set"); set && set->is_object()) {
    TRY_OK(check_set(*set, type));
  }
  return {};
}

}  // namespace

Result<void> check_rule(const Rule& rule, const WorkflowType& type) {
  if (rule.on == Rule::On::phase && !type.def.declares(rule.on_text))
    return refuse(errc::invalid_transition,
                  fmt::format("rule '{}' waits for phase '{}', which {} does not declare",
                              rule.name, rule.on_text, type.def.name));
  if (const js::Value* when = rule.body.find("when")) {
    TRY_OK(check_when(*when));
  }
  TRY_OK(check_conditions(rule.when, type));
  for (const js::Value& action : rule.then) {
    TRY_OK(check_members(action));
    TRY_OK(check_texts(action));
    if (action.string_or("workflow", type.def.name) != type.def.name)
      continue;  // about another type
    TRY_OK(check_in_type(action, rule, type));
  }
  return {};
}

}  // namespace pawl::lifecycle

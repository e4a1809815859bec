#include "faces/lifecycle/rule/rule_firing.h"

#include <fmt/format.h>

#include "json/text.h"

namespace pawl::lifecycle {

namespace {

// Finds the one type that has an instance with this id: one read for each type.
Result<WorkflowTypePtr> find_type_of(Turn& turn, std::string_view tenant,
                                     std::string_view id_text) {
  std::vector<std::string> names;
  TRY_OK(turn.scan(type_prefix(tenant), [&](BytesView key, const Cell&) {
    names.push_back(parts_of(key).back());
    return true;
  }));
  WorkflowTypePtr found;
  for (const std::string& name : names) {
    TRY(Cell cell, turn.read(instance_key(tenant, name, id_text)));
    if (!cell.exists()) continue;
    if (found)
      return refuse(errc::ambiguous_id, fmt::format("'{}' is a {} and a {}: name the workflow",
                                                    id_text, found->def.name, name));
    TRY(found, load_type(turn, tenant, name));
  }
  if (!found) return refuse(errc::entity_not_found, fmt::format("'{}' is in no workflow", id_text));
  return found;
}

// Nothing was written: the answer names the version that the instance has.
Outcome unchanged(const LoadedInstance& loaded, std::string result) {
  return {.version = loaded.cell.version,
          .phase = std::string(loaded.stored.phase),
          .result = std::move(result)};
}

// The action's own workflow wins, then the rule's, then the type that has an instance of this id.
Result<WorkflowTypePtr> type_of(RuleFiring& firing, const js::Value& action) {
  std::string_view named = action.string_or("workflow");
  if (!named.empty()) {
    TRY(std::string name, resolved_text("workflow", named, firing.variables));
    return load_type(firing.turn, firing.tenant, trimmed(name));
  }
  if (!firing.workflow.empty()) return load_type(firing.turn, firing.tenant, firing.workflow);
  return find_type_of(firing.turn, firing.tenant, firing.variables.entity_id);
}

// The order of the checks is the original's: texts, workflow, names in `set`, target, instance,
// edge, and the values of `set` last.
Result<Outcome> act_transition(RuleFiring& firing, const js::Value& action) {
  TRY(std::string to, resolved_text("phase", action.string_or("phase"), firing.variables));
  std::string_view target = trimmed(to);
  if (target.empty()) return refuse(errc::invalid_rule, "lifecycle_transition: the phase is blank");
  TRY(std::string note, resolved_text("reason", action.string_or("reason"), firing.variables));
  TRY(WorkflowTypePtr type, type_of(firing, action));
  const js::Value* set = action.find("set");
  if (set && set->is_object())
    // Before the instance is read: a protected field is reported even for a missing instance.
    for (const auto& [field_name, unused] : set->object()) {
      TRY_OK(check_rule_writable(*type, field_name));
    }
  TRY_OK(check_target(*type, target));
  TRY(LoadedInstance loaded,
      load_instance(firing.turn, firing.tenant, type, firing.variables.entity_id));
  TRY_OK(check_edge(type->def, loaded.id, loaded.stored.phase, target));
  TRY(FieldValues sets,
      apply_set(set ? *set : js::Value(), *type, loaded.stored.record, firing.variables));
  return move(firing.turn, loaded, target, std::move(sets),
              {source::rule, note, firing.caller, true, 0, firing.depth});
}

Result<Outcome> act_complete(RuleFiring& firing, const js::Value& action) {
  TRY(WorkflowTypePtr type, type_of(firing, action));
  TRY(LoadedInstance loaded,
      load_instance(firing.turn, firing.tenant, type, firing.variables.entity_id));
  TRY(TerminalChoice choice, choose_terminal_phase(*type, loaded.id, loaded.stored.phase));
  Outcome out = move(firing.turn, loaded, choice.phase, {},
                     {source::rule, {}, firing.caller, true, 0, firing.depth});
  out.warning = std::move(choice.warning);
  return out;
}

// The phase must be called "failed"; it need not be terminal.
Result<Outcome> act_fail(RuleFiring& firing, const js::Value& action) {
  TRY(std::string reason, resolved_text("reason", action.string_or("reason"), firing.variables));
  if (trimmed(reason).empty())
    return refuse(errc::reason_required, "lifecycle_fail: the reason is blank");
  TRY(WorkflowTypePtr type, type_of(firing, action));
  if (!type->def.declares("failed"))
    return refuse(errc::invalid_transition,
                  fmt::format("{} has no phase called 'failed'", type->def.name));
  TRY(LoadedInstance loaded,
      load_instance(firing.turn, firing.tenant, type, firing.variables.entity_id));
  TRY_OK(check_edge(type->def, loaded.id, loaded.stored.phase, "failed"));
  return move(firing.turn, loaded, "failed", {},
              {source::rule, reason, firing.caller, true, 0, firing.depth});
}

// Names as in rules.cc.
struct Action {
  std::string_view name;
  Result<Outcome> (*act)(RuleFiring&, const js::Value&);
};
constexpr Action kActions[] = {{"lifecycle_transition", act_transition},
                               {"lifecycle_complete", act_complete},
                               {"lifecycle_fail", act_fail}};

// When the action's own condition does not hold, returns the outcome that says so.
Result<std::optional<Outcome>> unmet_guard(RuleFiring& firing, const js::Value& action) {
  const js::Value* guard = action.find("when");
  if (!guard || guard->is_null()) return std::optional<Outcome>();
  TRY(std::vector<Condition> when, parse_when(*guard));
  TRY(WorkflowTypePtr type, type_of(firing, action));
  TRY(LoadedInstance loaded,
      load_instance(firing.turn, firing.tenant, type, firing.variables.entity_id));
  TRY(bool fits, holds(when, type.get(), loaded.stored.record, firing.variables));
  if (fits) return std::optional<Outcome>();
  return std::optional<Outcome>(unchanged(loaded, "not_met"));
}

}  // namespace

Result<Outcome> run_one_action(RuleFiring& firing, const js::Value& action) {
  TRY_OK(check_action(action));
  TRY_OK(check_texts(action));
  if (firing.variables.entity_id.empty())
    return refuse(errc::bad_id, "the action has no entity id");
  TRY(std::optional<Outcome> not_met, unmet_guard(firing, action));
  if (not_met) return *std::move(not_met);
  for (const Action& row : kActions)
    if (row.name == action.string_or("type")) return row.act(firing, action);
  return refuse(errc::invalid_rule, "unknown action");
}

void prepare(RuleFiring& firing) {
  firing.variables.now = firing.turn.now();
  firing.variables.lookup = [&firing]() -> std::shared_ptr<const ManagedEntity> {
    auto type = firing.workflow.empty()
                    ? find_type_of(firing.turn, firing.tenant, firing.variables.entity_id)
                    : load_type(firing.turn, firing.tenant, firing.workflow);
    if (!type) return nullptr;
    auto loaded = load_instance(firing.turn, firing.tenant, *type, firing.variables.entity_id);
    if (!loaded) return nullptr;
    return std::make_shared<const ManagedEntity>(
        ManagedEntity{loaded->type, std::string(loaded->stored.phase)});
  };
}

Result<Outcome> fire_rule(RuleFiring& firing, RuleCell& cell) {
  const Rule& rule = cell.rule;
  firing.workflow = rule.workflow;
  TRY(WorkflowTypePtr type, load_type(firing.turn, firing.tenant, rule.workflow));
  TRY(LoadedInstance loaded,
      load_instance(firing.turn, firing.tenant, type, firing.variables.entity_id));
  TRY(bool fits, holds(rule.when, type.get(), loaded.stored.record, firing.variables));
  if (!fits) return unchanged(loaded, "not_met");
  // Only firings whose conditions hold are counted.
  TRY(bool may_fire, count_rule(firing, rule));
  if (!may_fire) return unchanged(loaded, "exhausted");
  firing.caller = "rule:" + rule.name;
  Outcome last{.result = "fired"};
  std::optional<Error> first_error;
  for (size_t index = 0; index < rule.then.size(); ++index) {
    TRY(bool may_act, count_action(firing, rule, index));
    if (!may_act) continue;
    Turn::Mark mark = firing.turn.mark();
    auto done = run_one_action(firing, rule.then[index]);
    if (done) {
      last = std::move(*done);
      last.result = "fired";
      continue;
    }
    firing.turn.rewind(mark);
    if (!first_error) first_error = std::move(done.error());
  }
  ++cell.fired;
  cell.last_fired = firing.turn.now();
  if (first_error) {
    ++cell.failed;
    cell.last_error = first_error->message;
    last.result = "failed";
    last.warning = cell.last_error;
  }
  firing.turn.write(rule_key(firing.tenant, rule.name), encode(cell));
  return last;
}

// Parses the rule's JSON on every read: rules fire rarely, compared with writes.
Result<std::optional<RuleCell>> read_rule(Turn& turn, std::string_view tenant,
                                          std::string_view name) {
  TRY(Cell cell, turn.read(rule_key(tenant, name)));
  if (!cell.exists()) return std::optional<RuleCell>();
  TRY(RuleCell out, decode_rule(cell.value()));
  out.version = cell.version;
  return std::optional<RuleCell>(std::move(out));
}

}  // namespace pawl::lifecycle

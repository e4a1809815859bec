#include "faces/lifecycle/run/verbs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pawl::lifecycle {

// The cell cache keeps the decoded type, so most turns parse nothing.
Result<WorkflowTypePtr> load_type(Turn& turn, std::string_view tenant, std::string_view name) {
  TRY(WorkflowTypePtr type, turn.read_as<WorkflowType>(type_key(tenant, name), decode_type));
  if (!type) return refuse(errc::workflow_not_registered, fmt::format("'{}'", name));
  return type;
}

Result<LoadedInstance> load_instance(Turn& turn, std::string_view tenant, WorkflowTypePtr type,
                                     std::string_view id_text) {
  TRY_OK(check_id(id_text));
  LoadedInstance out{std::move(type), std::string(tenant), std::string(id_text), {}, {}, {}};
  out.key = instance_key(tenant, out.type->def.name, id_text);
  TRY(out.cell, turn.read(out.key));
  if (!out.cell.exists())
    return refuse(errc::entity_not_found, fmt::format("{} '{}'", out.type->def.name, id_text));
  TRY(out.stored, decode_instance(out.cell.value()));
  return out;
}

Result<void> check_target(const WorkflowType& type, std::string_view to) {
  if (type.def.declares(to)) return {};
  return refuse(errc::invalid_transition,
                fmt::format("'{}' is not a phase of {}; its phases: {}", to, type.def.name,
                            fmt::join(type.def.phases(), ", ")));
}

static std::string terminal_message(const dynamic_type& def, std::string_view id_text,
                                    std::string_view from) {
  return fmt::format("{} '{}' is in '{}'{}", def.name, id_text, from,
                     def.declares(from) ? "" : ", which is not declared any more");
}

// A phase that the type does not declare counts as terminal.
Result<void> check_edge(const dynamic_type& def, std::string_view id_text, std::string_view from,
                        std::string_view to) {
  if (def.is_terminal(from))
    return refuse(errc::terminal_phase, terminal_message(def, id_text, from));
  if (!def.allows(from, to))
    return refuse(
        errc::invalid_transition,
        fmt::format("{} '{}' cannot go from '{}' to '{}'; from '{}' it can go to: {}", def.name,
                    id_text, from, to, from, fmt::join(*def.targets(from), ", ")));
  return {};
}

void deliver(Turn& turn, std::string_view tenant, std::string_view verb, const Command& command) {
  turn.open({.id = fmt::format("lifecycle:{}", turn.dice().uuid4()),
             .to = To::cell,
             .program = "lifecycle",
             .tenant = std::string(tenant),
             .queue = std::string(verb),
             .due = 0,
             .body = encode(command)});
}

// Each rule of the phase is delivered in a turn of its own, after this frame is durable.
static void deliver_rules(Turn& turn, const LoadedInstance& loaded, std::string_view phase_name,
                          const WriteCause& cause) {
  auto it = loaded.type->rules_by_phase.find(std::string(phase_name));
  if (it == loaded.type->rules_by_phase.end()) return;
  for (const std::string& rule : it->second) {
    Command fire;
    fire.type = loaded.type->def.name;
    fire.id = loaded.id;
    fire.to = phase_name;
    fire.note = rule;
    fire.expected_version = cause.depth + 1;
    deliver(turn, loaded.tenant, "fire", fire);
  }
}

Outcome save(Turn& turn, const LoadedInstance& loaded, std::string_view bytes,
             const WriteCause& cause) {
  const WorkflowType& type = *loaded.type;
  StoredInstance stored;
  // Never 0, which means "none".
  stored.stamp = cause.stamp ? cause.stamp : turn.dice().next() | 1;
  stored.created = loaded.cell.exists() ? loaded.stored.created : turn.now();
  stored.updated = turn.now();
  stored.triggered = cause.triggered;
  stored.event = cause.event;
  stored.note = cause.note;
  stored.caller = cause.caller;
  stored.phase = text_field(bytes, type.phase_field);
  if (!type.parent_field.empty()) stored.parent = text_field(bytes, type.parent_field);
  // Kept with the instance: the view must erase the rows that it made, whatever the type says
  // later.
  stored.index_names = type.index_names;
  stored.record = bytes;
  turn.write(loaded.key, encode(stored));
  // A self-edge enters its phase again.
  bool entered = cause.event || !loaded.cell.exists() || loaded.stored.phase != stored.phase;
  if (entered && !type.rules_by_phase.empty()) deliver_rules(turn, loaded, stored.phase, cause);
  return {.phase = std::string(stored.phase)};
}

// The phase comes last, so that `sets` cannot override it.
Outcome move(Turn& turn, const LoadedInstance& loaded, std::string_view to, FieldValues sets,
             const WriteCause& cause) {
  sets.emplace_back(loaded.type->phase_field, value(to));
  std::string bytes = with_fields(loaded.stored.record, sets);
  return save(turn, loaded, bytes, cause);
}

Result<TerminalChoice> choose_terminal_phase(const WorkflowType& type, std::string_view id_text,
                                             std::string_view from) {
  if (type.def.is_terminal(from))
    return refuse(errc::terminal_phase, terminal_message(type.def, id_text, from));
  std::vector<std::string> candidates;
  for (const std::string& to : *type.def.targets(from))
    if (type.def.is_terminal(to)) candidates.push_back(to);
  if (candidates.empty())
    return refuse(errc::invalid_transition,
                  fmt::format("{} '{}' has no edge from '{}' to a terminal phase", type.def.name,
                              id_text, from));
  // The first by name, as in the original; a phase marked as success is preferred.
  std::sort(candidates.begin(), candidates.end());
  for (const std::string& to : candidates)
    if (std::find(type.def.success.begin(), type.def.success.end(), to) != type.def.success.end())
      return TerminalChoice{to, {}};
  TerminalChoice out{candidates[0], {}};
  if (candidates.size() > 1)
    out.warning = fmt::format(
        "complete: {} '{}' could end in {}; '{}' was taken: name the target, or mark one as "
        "success",
        type.def.name, id_text, fmt::join(candidates, ", "), candidates[0]);
  return out;
}

}  // namespace pawl::lifecycle

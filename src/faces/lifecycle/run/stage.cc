#include "faces/lifecycle/run/stage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pawl::lifecycle {

Result<TypePtr> need_type(Turn& turn, std::string_view tenant, std::string_view name) {
  TRY(TypePtr type, turn.read_as<Type>(type_key(tenant, name), decode_type));
  if (!type) return refuse(errc::workflow_not_registered, fmt::format("'{}'", name));
  return type;
}

Result<Subject> need_instance(Turn& turn, std::string_view tenant, TypePtr type,
                              std::string_view id_text) {
  TRY_OK(check_id(id_text));
  Subject out{std::move(type), std::string(tenant), std::string(id_text), {}, {}, {}};
  out.key = instance_key(tenant, out.type->def.name, id_text);
  TRY(out.cell, turn.read(out.key));
  if (!out.cell.exists())
    return refuse(errc::entity_not_found, fmt::format("{} '{}'", out.type->def.name, id_text));
  TRY(out.held, parse_held(out.cell.value()));
  return out;
}

Result<void> check_target(const Type& type, std::string_view to) {
  if (type.def.declares(to)) return {};
  return refuse(errc::invalid_transition,
                fmt::format("'{}' is not a phase of {}; its phases: {}", to, type.def.name,
                            fmt::join(type.def.phases(), ", ")));
}

static std::string terminal_words(const dynamic_type& def, std::string_view id_text,
                                  std::string_view from) {
  return fmt::format("{} '{}' is in '{}'{}", def.name, id_text, from,
                     def.declares(from) ? "" : ", which is not declared any more");
}

Result<void> check_edge(const dynamic_type& def, std::string_view id_text, std::string_view from,
                        std::string_view to) {
  if (def.is_terminal(from))
    return refuse(errc::terminal_phase, terminal_words(def, id_text, from));
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

// Each rule that waits for the phase gets a delivery of its own, after this frame is durable.
static void set_off(Turn& turn, const Subject& subject, std::string_view phase_name,
                    const Why& why) {
  auto it = subject.type->hooks.find(std::string(phase_name));
  if (it == subject.type->hooks.end()) return;
  for (const std::string& rule : it->second) {
    Command fire;
    fire.type = subject.type->def.name;
    fire.id = subject.id;
    fire.to = phase_name;
    fire.note = rule;
    fire.expected_version = why.depth + 1;
    deliver(turn, subject.tenant, "fire", fire);
  }
}

Outcome save(Turn& turn, const Subject& subject, std::string_view bytes, const Why& why) {
  const Type& type = *subject.type;
  Held held;
  held.stamp = why.stamp ? why.stamp : turn.dice().next() | 1;
  held.created = subject.cell.exists() ? subject.held.created : turn.now();
  held.updated = turn.now();
  held.triggered = why.triggered;
  held.event = why.event;
  held.note = why.note;
  held.caller = why.caller;
  held.phase = text_field(bytes, type.phase_field);
  if (!type.parent_field.empty()) held.parent = text_field(bytes, type.parent_field);
  held.index_names = type.index_names;
  held.record = bytes;
  turn.write(subject.key, encode(held));
  bool entered = why.event || !subject.cell.exists() || subject.held.phase != held.phase;
  if (entered && !type.hooks.empty()) set_off(turn, subject, held.phase, why);
  return {.phase = std::string(held.phase)};
}

Outcome move(Turn& turn, const Subject& subject, std::string_view to, Sets sets, const Why& why) {
  sets.emplace_back(subject.type->phase_field, value(to));
  std::string bytes = with_fields(subject.held.record, sets);
  return save(turn, subject, bytes, why);
}

Result<Ending> choose_ending(const Type& type, std::string_view id_text, std::string_view from) {
  if (type.def.is_terminal(from))
    return refuse(errc::terminal_phase, terminal_words(type.def, id_text, from));
  std::vector<std::string> candidates;
  for (const std::string& to : *type.def.targets(from))
    if (type.def.is_terminal(to)) candidates.push_back(to);
  if (candidates.empty())
    return refuse(errc::invalid_transition,
                  fmt::format("{} '{}' has no edge from '{}' to a terminal phase", type.def.name,
                              id_text, from));
  std::sort(candidates.begin(), candidates.end());
  for (const std::string& to : candidates)
    if (std::find(type.def.success.begin(), type.def.success.end(), to) != type.def.success.end())
      return Ending{to, {}};
  Ending out{candidates[0], {}};
  if (candidates.size() > 1)
    out.warning = fmt::format(
        "complete: {} '{}' could end in {}; '{}' was taken: name the target, or mark one as "
        "success",
        type.def.name, id_text, fmt::join(candidates, ", "), candidates[0]);
  return out;
}

}  // namespace pawl::lifecycle

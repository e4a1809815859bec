#include "faces/lifecycle/run/program.h"

#include <fmt/format.h>

#include "faces/lifecycle/read/views.h"
#include "faces/lifecycle/run/verbs.h"
#include "json/text.h"

namespace pawl::lifecycle {

namespace {

WriteCause cause_of(CommandContext& context, bool event) {
  return {context.command.triggered,  context.command.note,
          context.turn.caller().user, event,
          context.command.stamp,      0};
}

// The fields whose index holds every instance: indexed since before the first instance, or added
// while the type had no instances.
Result<std::vector<std::string>> trusted_indexes(CommandContext& context, const WorkflowType& type,
                                                 const WorkflowType* before) {
  bool empty = !before;
  if (before) {
    empty = true;
    TRY_OK(context.turn.scan(instance_prefix(context.tenant, type.def.name),
                             [&](BytesView, const Cell&) { return empty = false; }));
  }
  std::vector<std::string> out;
  for (const auto& f : type.def.fields) {
    if (!has(f.t, indexable)) continue;
    const auto* old = before ? before->def.find(f.name) : nullptr;
    bool kept =
        old && old->k == f.k &&
        std::find(before->indexed.begin(), before->indexed.end(), f.name) != before->indexed.end();
    if (empty || kept) out.push_back(f.name);
  }
  return out;
}

// `command.to` is "data" or "code". Data may not change an existing definition. Code may: the
// program that declares the struct decides what it looks like.
Result<Outcome> put_type(CommandContext& context) {
  TRY(js::Value body, parse_or(errc::invalid_definition, context.command.text));
  TRY(dynamic_type def, parse_type(context.command.type, body));
  TRY_OK(validate(def));
  Key at = type_key(context.tenant, def.name);
  TRY(WorkflowTypePtr before, context.turn.read_as<WorkflowType>(at, decode_type));
  bool data = context.command.to == "data";
  if (before && (data ? same_definition(before->def, def) : before->def == def))
    return Outcome{.result = "same"};
  if (before && data)
    return refuse(
        errc::definition_differs,
        fmt::format("'{}': delete its instances and use a new name, or send the definition it has",
                    def.name));
  WorkflowType type = make_type(std::move(def));
  TRY(type.indexed, trusted_indexes(context, type, before.get()));
  if (before) type.rules_by_phase = before->rules_by_phase;
  Bytes bytes = encode(type);
  context.turn.write(at, std::move(bytes), std::make_shared<const WorkflowType>(std::move(type)));
  return Outcome{.result = before ? "changed" : "created"};
}

// The phase is checked before the existence of the instance, as in the original.
Result<Outcome> create(CommandContext& context) {
  TRY(WorkflowTypePtr type, load_type(context.turn, context.tenant, context.command.type));
  TRY_OK(check_id(context.command.id));
  std::string_view bytes = context.command.record;
  std::string_view first = text_field(bytes, type->phase_field);
  if (!type->def.declares(first))
    return refuse(
        errc::invalid_transition,
        fmt::format("the initial phase '{}' is not a phase of {}", first, type->def.name));
  if (text_field(bytes, type->id_field) != context.command.id)
    return refuse(errc::bad_id,
                  fmt::format("the state's {} is not '{}'", type->id_field, context.command.id));
  LoadedInstance loaded{type,
                        context.tenant,
                        std::string(context.command.id),
                        instance_key(context.tenant, type->def.name, context.command.id),
                        {},
                        {}};
  TRY(Cell there, context.turn.read(loaded.key));
  if (there.exists())
    return refuse(errc::already_exists, fmt::format("{} '{}'", type->def.name, context.command.id));
  return save(context.turn, loaded, bytes, cause_of(context, true));
}

// An optimistic write: the whole record, based on a version that must still be current. With `to`
// it is a transition as well, and the phase in the record is overwritten.
Result<Outcome> replace(CommandContext& context) {
  const Command& c = context.command;
  TRY(WorkflowTypePtr type, load_type(context.turn, context.tenant, c.type));
  if (!c.to.empty()) {
    TRY_OK(check_target(*type, c.to));
  }
  TRY(LoadedInstance loaded, load_instance(context.turn, context.tenant, type, c.id));
  // A caller that has just written knows its stamp, but not yet the version that the frame will
  // get.
  bool current = c.expected_stamp ? loaded.stored.stamp == c.expected_stamp
                                  : loaded.cell.version == c.expected_version;
  if (!current)
    return refuse(errc::conflict, fmt::format("{} '{}' has been written since: read it again",
                                              type->def.name, c.id));
  if (text_field(c.record, type->id_field) != c.id)
    return refuse(errc::bad_id,
                  fmt::format("the {} of '{}' cannot be changed", type->id_field, c.id));
  std::string kept = with_unlisted(c.record, loaded.stored.record, type->def);
  if (c.to.empty()) return save(context.turn, loaded, kept, cause_of(context, false));
  TRY_OK(check_edge(type->def, c.id, loaded.stored.phase, c.to));
  std::string bytes = with_fields(kept, {{type->phase_field, value(c.to)}});
  return save(context.turn, loaded, bytes, cause_of(context, true));
}

Result<Outcome> transition(CommandContext& context) {
  TRY(WorkflowTypePtr type, load_type(context.turn, context.tenant, context.command.type));
  TRY_OK(check_target(*type, context.command.to));
  TRY(LoadedInstance loaded, load_instance(context.turn, context.tenant, type, context.command.id));
  TRY_OK(check_edge(type->def, loaded.id, loaded.stored.phase, context.command.to));
  return move(context.turn, loaded, context.command.to, {}, cause_of(context, true));
}

// `to` names the terminal phase; without it choose_terminal_phase() decides.
Result<Outcome> complete(CommandContext& context) {
  TRY(WorkflowTypePtr type, load_type(context.turn, context.tenant, context.command.type));
  std::string_view target = context.command.to;
  if (!target.empty()) {
    TRY_OK(check_target(*type, target));
    if (!type->def.is_terminal(target))
      return refuse(errc::invalid_transition,
                    fmt::format("'{}' is not a terminal phase of {}", target, type->def.name));
  }
  TRY(LoadedInstance loaded, load_instance(context.turn, context.tenant, type, context.command.id));
  if (!target.empty()) {
    TRY_OK(check_edge(type->def, loaded.id, loaded.stored.phase, target));
    return move(context.turn, loaded, target, {}, cause_of(context, true));
  }
  TRY(TerminalChoice choice, choose_terminal_phase(*type, loaded.id, loaded.stored.phase));
  Outcome out = move(context.turn, loaded, choice.phase, {}, cause_of(context, true));
  out.warning = std::move(choice.warning);
  return out;
}

// The reason is checked before the type, as in the original.
Result<Outcome> fail_instance(CommandContext& context) {
  if (context.command.note.empty()) return refuse(errc::reason_required, "say why it failed");
  TRY(WorkflowTypePtr type, load_type(context.turn, context.tenant, context.command.type));
  if (!type->def.declares("failed"))
    return refuse(errc::invalid_transition,
                  fmt::format("{} has no phase called 'failed'", type->def.name));
  context.command.to = "failed";
  return transition(context);
}

// The history stays: every version of an instance is kept, and a new one may take the id.
Result<Outcome> remove(CommandContext& context) {
  TRY(WorkflowTypePtr type, load_type(context.turn, context.tenant, context.command.type));
  TRY(LoadedInstance loaded, load_instance(context.turn, context.tenant, type, context.command.id));
  context.turn.erase(loaded.key);
  return Outcome{.phase = std::string(kDeleted)};
}

// All names are checked before the instance is read, and nothing is written when one is refused. An
// empty patch succeeds without a write.
Result<Outcome> patch(CommandContext& context) {
  TRY(WorkflowTypePtr type, load_type(context.turn, context.tenant, context.command.type));
  TRY(js::Value body, parse_or(errc::type_mismatch, context.command.text));
  js::Object none_given;
  if (!body.is_object() && !body.is_null())
    return refuse(errc::type_mismatch, "a patch must be an object of fields");
  const js::Object& fields = body.is_object() ? body.object() : none_given;
  for (const auto& [name, unused] : fields) {
    const auto* f = type->def.find(name);
    if (!f)
      return refuse(errc::unknown_field,
                    fmt::format("'{}' is not a field of {}", name, type->def.name));
    if (!has(f->t, operator_writable))
      return refuse(errc::field_not_operator_writable,
                    fmt::format("'{}' of {}", name, type->def.name));
  }
  TRY(LoadedInstance loaded, load_instance(context.turn, context.tenant, type, context.command.id));
  FieldValues sets;
  for (const auto& [name, given] : fields) {
    TRY(value v, coerce(name, type->def.find(name)->k, given));
    sets.emplace_back(name, std::move(v));
  }
  if (sets.empty())
    return Outcome{.version = loaded.cell.version, .phase = std::string(loaded.stored.phase)};
  return save(context.turn, loaded, with_fields(loaded.stored.record, sets),
              cause_of(context, false));
}

struct Verb {
  std::string_view name;
  Result<Outcome> (*run)(CommandContext&);
};
constexpr Verb kVerbs[] = {
    {"transition", transition},
    {"replace", replace},
    {"create", create},
    {"patch", patch},
    {"complete", complete},
    {"fail", fail_instance},
    {"remove", remove},
    {"put_type", put_type},
    {"put_rule", put_rule},
    {"remove_rule", remove_rule},
    {"action", run_action},
    {"run_rule", run_rule},
    {"fire", fire},
    {"sweep", sweep},
    {"forget", forget},
};

}  // namespace

Result<Bytes> Program::run(Turn& turn, const Input& input) const {
  // The clock's receipt has no command: the effect's id says which rule is due.
  if (input.verb == "timer") return timer(turn, input.settles);
  for (const Verb& verb : kVerbs) {
    if (verb.name != input.verb) continue;
    TRY(Command command, decode_command(input.body));
    CommandContext context{turn, turn.caller().tenant, command};
    TRY(Outcome outcome, verb.run(context));
    return encode(outcome);
  }
  return refuse(errc::unsupported, fmt::format("the lifecycle face has no verb '{}'", input.verb));
}

void Program::view(const Committed& frame, ViewRows& rows) const {
  for (const Change& change : frame.changes)
    view_instance(change, frame.seq, rows);
}

bool Program::keeps_history(BytesView key) const {
  InstanceName name;
  return split_instance(key, name);
}

}  // namespace pawl::lifecycle

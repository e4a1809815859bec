#include "faces/lifecycle/run/program.h"

#include <fmt/format.h>

#include "faces/lifecycle/read/views.h"
#include "faces/lifecycle/run/stage.h"
#include "json/text.h"

namespace pawl::lifecycle {

namespace {

Why why_of(Ask& ask, bool event) {
  return {
      ask.command.triggered, ask.command.note, ask.turn.caller().user, event, ask.command.stamp, 0};
}

// Fields indexed from the first instance on, and those that came while there was none.
Result<std::vector<std::string>> trusted_indexes(Ask& ask, const Type& type, const Type* before) {
  bool empty = !before;
  if (before) {
    empty = true;
    TRY_OK(ask.turn.scan(instance_prefix(ask.tenant, type.def.name),
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

// command.to: "data" refuses another definition under the same name; "code" takes it over, since
// the program that brings a struct is the newest word on it.
Result<Outcome> put_type(Ask& ask) {
  TRY(js::Value body, parse_or(errc::invalid_definition, ask.command.text));
  TRY(dynamic_type def, parse_type(ask.command.type, body));
  TRY_OK(validate(def));
  Key at = type_key(ask.tenant, def.name);
  TRY(TypePtr before, ask.turn.read_as<Type>(at, decode_type));
  bool data = ask.command.to == "data";
  if (before && (data ? same_definition(before->def, def) : before->def == def))
    return Outcome{.word = "same"};
  if (before && data)
    return refuse(
        errc::definition_differs,
        fmt::format("'{}': delete its instances and use a new name, or send the definition it has",
                    def.name));
  Type type = make_type(std::move(def));
  TRY(type.indexed, trusted_indexes(ask, type, before.get()));
  if (before) type.hooks = before->hooks;
  Bytes bytes = encode(type);
  ask.turn.write(at, std::move(bytes), std::make_shared<const Type>(std::move(type)));
  return Outcome{.word = before ? "changed" : "created"};
}

Result<Outcome> create(Ask& ask) {
  TRY(TypePtr type, need_type(ask.turn, ask.tenant, ask.command.type));
  TRY_OK(check_id(ask.command.id));
  std::string_view bytes = ask.command.record;
  std::string_view first = text_field(bytes, type->phase_field);
  if (!type->def.declares(first))
    return refuse(
        errc::invalid_transition,
        fmt::format("the initial phase '{}' is not a phase of {}", first, type->def.name));
  if (text_field(bytes, type->id_field) != ask.command.id)
    return refuse(errc::bad_id,
                  fmt::format("the state's {} is not '{}'", type->id_field, ask.command.id));
  Subject subject{type,
                  ask.tenant,
                  std::string(ask.command.id),
                  instance_key(ask.tenant, type->def.name, ask.command.id),
                  {},
                  {}};
  TRY(Cell there, ask.turn.read(subject.key));
  if (there.exists())
    return refuse(errc::already_exists, fmt::format("{} '{}'", type->def.name, ask.command.id));
  return save(ask.turn, subject, bytes, why_of(ask, true));
}

Result<Outcome> replace(Ask& ask) {
  const Command& c = ask.command;
  TRY(TypePtr type, need_type(ask.turn, ask.tenant, c.type));
  if (!c.to.empty()) {
    TRY_OK(check_target(*type, c.to));
  }
  TRY(Subject subject, need_instance(ask.turn, ask.tenant, type, c.id));
  bool stands = c.expected_stamp ? subject.held.stamp == c.expected_stamp
                                 : subject.cell.version == c.expected_version;
  if (!stands)
    return refuse(errc::conflict, fmt::format("{} '{}' has been written since: read it again",
                                              type->def.name, c.id));
  if (text_field(c.record, type->id_field) != c.id)
    return refuse(errc::bad_id,
                  fmt::format("the {} of '{}' cannot be changed", type->id_field, c.id));
  std::string kept = with_unlisted(c.record, subject.held.record, type->def);
  if (c.to.empty()) return save(ask.turn, subject, kept, why_of(ask, false));
  TRY_OK(check_edge(type->def, c.id, subject.held.phase, c.to));
  std::string bytes = with_fields(kept, {{type->phase_field, value(c.to)}});
  return save(ask.turn, subject, bytes, why_of(ask, true));
}

Result<Outcome> transition(Ask& ask) {
  TRY(TypePtr type, need_type(ask.turn, ask.tenant, ask.command.type));
  TRY_OK(check_target(*type, ask.command.to));
  TRY(Subject subject, need_instance(ask.turn, ask.tenant, type, ask.command.id));
  TRY_OK(check_edge(type->def, subject.id, subject.held.phase, ask.command.to));
  return move(ask.turn, subject, ask.command.to, {}, why_of(ask, true));
}

Result<Outcome> complete(Ask& ask) {
  TRY(TypePtr type, need_type(ask.turn, ask.tenant, ask.command.type));
  std::string_view target = ask.command.to;
  if (!target.empty()) {
    TRY_OK(check_target(*type, target));
    if (!type->def.is_terminal(target))
      return refuse(errc::invalid_transition,
                    fmt::format("'{}' is not a terminal phase of {}", target, type->def.name));
  }
  TRY(Subject subject, need_instance(ask.turn, ask.tenant, type, ask.command.id));
  if (!target.empty()) {
    TRY_OK(check_edge(type->def, subject.id, subject.held.phase, target));
    return move(ask.turn, subject, target, {}, why_of(ask, true));
  }
  TRY(Ending ending, choose_ending(*type, subject.id, subject.held.phase));
  Outcome out = move(ask.turn, subject, ending.to, {}, why_of(ask, true));
  out.warning = std::move(ending.warning);
  return out;
}

Result<Outcome> fail_instance(Ask& ask) {
  if (ask.command.note.empty()) return refuse(errc::reason_required, "say why it failed");
  TRY(TypePtr type, need_type(ask.turn, ask.tenant, ask.command.type));
  if (!type->def.declares("failed"))
    return refuse(errc::invalid_transition,
                  fmt::format("{} has no phase called 'failed'", type->def.name));
  ask.command.to = "failed";
  return transition(ask);
}

Result<Outcome> remove(Ask& ask) {
  TRY(TypePtr type, need_type(ask.turn, ask.tenant, ask.command.type));
  TRY(Subject subject, need_instance(ask.turn, ask.tenant, type, ask.command.id));
  ask.turn.erase(subject.key);
  return Outcome{.phase = std::string(kDeleted)};
}

Result<Outcome> patch(Ask& ask) {
  TRY(TypePtr type, need_type(ask.turn, ask.tenant, ask.command.type));
  TRY(js::Value body, parse_or(errc::type_mismatch, ask.command.text));
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
  TRY(Subject subject, need_instance(ask.turn, ask.tenant, type, ask.command.id));
  Sets sets;
  for (const auto& [name, given] : fields) {
    TRY(value v, coerce(name, type->def.find(name)->k, given));
    sets.emplace_back(name, std::move(v));
  }
  if (sets.empty())
    return Outcome{.version = subject.cell.version, .phase = std::string(subject.held.phase)};
  return save(ask.turn, subject, with_fields(subject.held.record, sets), why_of(ask, false));
}

struct Verb {
  std::string_view name;
  Result<Outcome> (*run)(Ask&);
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
  if (input.verb == "timer") return timer(turn, input.settles);
  for (const Verb& verb : kVerbs) {
    if (verb.name != input.verb) continue;
    TRY(Command command, decode_command(input.body));
    Ask ask{turn, turn.caller().tenant, command};
    TRY(Outcome outcome, verb.run(ask));
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

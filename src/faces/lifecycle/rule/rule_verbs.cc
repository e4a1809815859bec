// What rules do on a turn: they are stored, set off, and act with no more rights than an operator.

#include <fmt/format.h>

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/run/stage.h"
#include "json/text.h"

namespace pawl::lifecycle {

namespace {

std::string timer_id(std::string_view tenant, std::string_view rule, Time due) {
  return key({"lifecycle", tenant, "rule", rule, std::to_string(due)});
}

void open_timer(Turn& turn, std::string_view tenant, RuleCell& cell) {
  auto next = next_firing(cell.rule, turn.now());
  cell.next = next.value_or(0);
  if (next)
    turn.open({.id = timer_id(tenant, cell.rule.name, *next),
               .to = To::clock,
               .program = "lifecycle",
               .tenant = std::string(tenant),
               .queue = "rule",
               .due = *next,
               .body = {}});
}

// The rest of a schedule's instances, after `last`.
void open_sweep(Turn& turn, std::string_view tenant, const RuleCell& cell, std::string_view last) {
  Command sweep;
  sweep.type = cell.rule.workflow;
  sweep.id = last;
  sweep.note = cell.rule.name;
  sweep.stamp = static_cast<uint64_t>(cell.next);
  deliver(turn, tenant, "sweep", sweep);
}

void close_timer(Turn& turn, std::string_view tenant, const RuleCell& cell) {
  if (cell.next) turn.withdraw(timer_id(tenant, cell.rule.name, cell.next));
}

// Adds or removes the rule's name at its phase, in the cell of its type.
Result<void> hook(Turn& turn, std::string_view tenant, const Rule& rule, bool on) {
  if (rule.on != Rule::On::phase) return {};
  Key at = type_key(tenant, rule.workflow);
  TRY(TypePtr type, turn.read_as<Type>(at, decode_type));
  if (!type) return {};
  Type changed = *type;
  auto& names = changed.hooks[rule.on_text];
  std::erase(names, rule.name);
  if (on && rule.enabled) names.push_back(rule.name);
  if (names.size() > limits::kRulesOfType)
    return refuse(errc::invalid_rule,
                  fmt::format("more than {} rules wait for phase '{}' of {}", limits::kRulesOfType,
                              rule.on_text, rule.workflow));
  if (names.empty()) changed.hooks.erase(rule.on_text);
  Bytes bytes = encode(changed);
  turn.write(at, std::move(bytes), std::make_shared<const Type>(std::move(changed)));
  return {};
}

Result<js::Value> object_of(std::string_view text, std::string_view what) {
  if (text.empty()) return js::Value(js::Object());
  TRY(js::Value value, parse_or(errc::invalid_rule, text));
  if (!value.is_object())
    return refuse(errc::invalid_rule, fmt::format("{} must be an object", what));
  return value;
}

// The one type that has an instance of this id, by one read a type.
Result<TypePtr> find_type_of(Turn& turn, std::string_view tenant, std::string_view id_text) {
  std::vector<std::string> names;
  TRY_OK(turn.scan(type_prefix(tenant), [&](BytesView key, const Cell&) {
    return names.push_back(parts_of(key).back()), true;
  }));
  TypePtr found;
  for (const std::string& name : names) {
    TRY(Cell cell, turn.read(instance_key(tenant, name, id_text)));
    if (!cell.exists()) continue;
    if (found)
      return refuse(errc::ambiguous_id, fmt::format("'{}' is a {} and a {}: name the workflow",
                                                    id_text, found->def.name, name));
    TRY(found, need_type(turn, tenant, name));
  }
  if (!found) return refuse(errc::entity_not_found, fmt::format("'{}' is in no workflow", id_text));
  return found;
}

// Who acts and on what: the rule's entity with everything its texts may name.
struct Scene {
  Turn& turn;
  std::string tenant;
  std::string workflow;  // of the entity, when it is known; else looked up
  Variables variables;
  std::string caller;
  uint64_t depth = 0;
};

void prepare(Scene& scene) {
  scene.variables.now = scene.turn.now();
  scene.variables.lookup = [&scene]() -> std::shared_ptr<const Managed> {
    auto type = scene.workflow.empty()
                    ? find_type_of(scene.turn, scene.tenant, scene.variables.entity_id)
                    : need_type(scene.turn, scene.tenant, scene.workflow);
    if (!type) return nullptr;
    auto subject = need_instance(scene.turn, scene.tenant, *type, scene.variables.entity_id);
    if (!subject) return nullptr;
    return std::make_shared<const Managed>(
        Managed{subject->type, std::string(subject->held.phase)});
  };
}

Result<TypePtr> type_of(Scene& scene, const js::Value& action) {
  std::string_view named = action.string_or("workflow");
  if (!named.empty()) {
    TRY(std::string name, resolved_text("workflow", named, scene.variables));
    return need_type(scene.turn, scene.tenant, trimmed(name));
  }
  if (!scene.workflow.empty()) return need_type(scene.turn, scene.tenant, scene.workflow);
  return find_type_of(scene.turn, scene.tenant, scene.variables.entity_id);
}

Result<Outcome> act_transition(Scene& scene, const js::Value& action) {
  TRY(std::string to, resolved_text("phase", action.string_or("phase"), scene.variables));
  std::string_view target = trimmed(to);
  if (target.empty()) return refuse(errc::invalid_rule, "lifecycle_transition: the phase is blank");
  TRY(std::string note, resolved_text("reason", action.string_or("reason"), scene.variables));
  TRY(TypePtr type, type_of(scene, action));
  const js::Value* set = action.find("set");
  if (set && set->is_object())
    for (const auto& [field_name, unused] : set->object()) {
      TRY_OK(check_rule_writable(*type, field_name));
    }
  TRY_OK(check_target(*type, target));
  TRY(Subject subject, need_instance(scene.turn, scene.tenant, type, scene.variables.entity_id));
  TRY_OK(check_edge(type->def, subject.id, subject.held.phase, target));
  TRY(Sets sets, apply_set(set ? *set : js::Value(), *type, subject.held.record, scene.variables));
  return move(scene.turn, subject, target, std::move(sets),
              {source::rule, note, scene.caller, true, 0, scene.depth});
}

Result<Outcome> act_complete(Scene& scene, const js::Value& action) {
  TRY(TypePtr type, type_of(scene, action));
  TRY(Subject subject, need_instance(scene.turn, scene.tenant, type, scene.variables.entity_id));
  TRY(Ending ending, choose_ending(*type, subject.id, subject.held.phase));
  Outcome out = move(scene.turn, subject, ending.to, {},
                     {source::rule, {}, scene.caller, true, 0, scene.depth});
  out.warning = std::move(ending.warning);
  return out;
}

Result<Outcome> act_fail(Scene& scene, const js::Value& action) {
  TRY(std::string reason, resolved_text("reason", action.string_or("reason"), scene.variables));
  if (trimmed(reason).empty())
    return refuse(errc::reason_required, "lifecycle_fail: the reason is blank");
  TRY(TypePtr type, type_of(scene, action));
  if (!type->def.declares("failed"))
    return refuse(errc::invalid_transition,
                  fmt::format("{} has no phase called 'failed'", type->def.name));
  TRY(Subject subject, need_instance(scene.turn, scene.tenant, type, scene.variables.entity_id));
  TRY_OK(check_edge(type->def, subject.id, subject.held.phase, "failed"));
  return move(scene.turn, subject, "failed", {},
              {source::rule, reason, scene.caller, true, 0, scene.depth});
}

struct Action {
  std::string_view name;
  Result<Outcome> (*act)(Scene&, const js::Value&);
};
constexpr Action kActions[] = {{"lifecycle_transition", act_transition},
                               {"lifecycle_complete", act_complete},
                               {"lifecycle_fail", act_fail}};

// The action's own guard: it acts only where this holds.
Result<std::optional<Outcome>> held_back(Scene& scene, const js::Value& action) {
  const js::Value* guard = action.find("when");
  if (!guard || guard->is_null()) return std::optional<Outcome>();
  TRY(std::vector<Condition> when, parse_when(*guard));
  TRY(TypePtr type, type_of(scene, action));
  TRY(Subject subject, need_instance(scene.turn, scene.tenant, type, scene.variables.entity_id));
  TRY(bool fits, holds(when, type.get(), subject.held.record, scene.variables));
  if (fits) return std::optional<Outcome>();
  return std::optional<Outcome>(Outcome{.version = subject.cell.version,
                                        .phase = std::string(subject.held.phase),
                                        .word = "not_met"});
}

Result<Outcome> act(Scene& scene, const js::Value& action) {
  TRY_OK(check_action(action));
  TRY_OK(check_texts(action));
  if (scene.variables.entity_id.empty()) return refuse(errc::bad_id, "the action has no entity id");
  TRY(std::optional<Outcome> not_met, held_back(scene, action));
  if (not_met) return *std::move(not_met);
  for (const Action& row : kActions)
    if (row.name == action.string_or("type")) return row.act(scene, action);
  return refuse(errc::invalid_rule, "unknown action");
}

// Counts go with the rule: one that is removed and put again under its name begins anew. This cell
// says how often that was; counts of another round are over.
Key round_key(std::string_view tenant, std::string_view rule) {
  return key({"lifecycle", tenant, "c", rule});
}

Result<uint64_t> round_of(Turn& turn, std::string_view tenant, std::string_view rule) {
  TRY(Cell cell, turn.read(round_key(tenant, rule)));
  return cell.exists() ? Reader(cell.value()).uint() : 0;
}

Key counts_prefix(std::string_view tenant, std::string_view rule) {
  return prefix({"lifecycle", tenant, "c", rule});
}

Result<bool> has_counts(Turn& turn, std::string_view tenant, std::string_view rule) {
  bool any = false;
  TRY_OK(turn.scan(counts_prefix(tenant, rule),
                   [&](BytesView, const Cell&) { return any = true, false; }));
  return any;
}

struct Count {
  uint64_t times = 0, round = 0;
};
Count count_in(const Cell& cell) {
  Reader r(cell.value());
  Count out;
  if (cell.exists()) out.times = r.uint();
  if (!r.rest().empty()) out.round = r.uint();
  return out;
}

// The counts of a round that is over, after `last`, are erased page by page.
void open_forget(Turn& turn, std::string_view tenant, std::string_view rule,
                 std::string_view last) {
  Command forget;
  forget.id = last;
  forget.note = rule;
  deliver(turn, tenant, "forget", forget);
}

Result<void> begin_round(Turn& turn, std::string_view tenant, std::string_view rule) {
  TRY(bool counted, has_counts(turn, tenant, rule));
  if (!counted) return {};
  TRY(uint64_t round, round_of(turn, tenant, rule));
  Bytes bytes;
  Writer(bytes).uint(round + 1);
  turn.write(round_key(tenant, rule), std::move(bytes));
  open_forget(turn, tenant, rule, {});
  return {};
}

// How often this has fired for the instance, this time included; at most one more than `most`.
Result<uint64_t> count_firing(Scene& scene, const Rule& rule, const Key& at, uint64_t max) {
  TRY(uint64_t round, round_of(scene.turn, scene.tenant, rule.name));
  TRY(Cell cell, scene.turn.read(at));
  Count before = count_in(cell);
  uint64_t count = before.round == round ? before.times : 0;
  if (++count > max) return count;
  Bytes bytes;
  Writer w(bytes);
  w.uint(count);
  if (round) w.uint(round);
  scene.turn.write(at, std::move(bytes));
  return count;
}

// Whether an action with a limit of its own has fired as often as it may.
Result<bool> used_up(Scene& scene, const Rule& rule, size_t place) {
  const js::Value* limit = rule.then[place].find("max_iterations");
  uint64_t max = limit && limit->is_number() ? limit->as_uint64().value_or(0) : 0;
  if (max == 0) return false;
  Key at = key({"lifecycle", scene.tenant, "c", rule.name, rule.workflow, scene.variables.entity_id,
                std::to_string(place)});
  TRY(uint64_t count, count_firing(scene, rule, at, max));
  return count > max;
}

// The count of the rule itself, for its limit and for $state. False: it has fired as often as it
// may.
Result<bool> counted(Scene& scene, const Rule& rule) {
  if (!rule.counted) return true;
  uint64_t max = rule.max_iterations ? rule.max_iterations : std::numeric_limits<uint64_t>::max();
  TRY(uint64_t count, count_firing(scene, rule,
                                   key({"lifecycle", scene.tenant, "c", rule.name, rule.workflow,
                                        scene.variables.entity_id}),
                                   max));
  scene.variables.state =
      js::object({{"iteration", count}, {"max_iterations", rule.max_iterations}});
  return count <= max;
}

// Every action runs, whatever became of the one before; the rule remembers the last error.
Result<Outcome> fire_for(Scene& scene, RuleCell& cell) {
  const Rule& rule = cell.rule;
  scene.workflow = rule.workflow;
  TRY(TypePtr type, need_type(scene.turn, scene.tenant, rule.workflow));
  TRY(Subject subject, need_instance(scene.turn, scene.tenant, type, scene.variables.entity_id));
  TRY(bool fits, holds(rule.when, type.get(), subject.held.record, scene.variables));
  if (!fits)
    return Outcome{.version = subject.cell.version,
                   .phase = std::string(subject.held.phase),
                   .word = "not_met"};
  TRY(bool may, counted(scene, rule));
  if (!may)
    return Outcome{.version = subject.cell.version,
                   .phase = std::string(subject.held.phase),
                   .word = "exhausted"};
  scene.caller = "rule:" + rule.name;
  Outcome last{.word = "fired"};
  std::optional<Error> first_error;
  for (size_t place = 0; place < rule.then.size(); ++place) {
    TRY(bool over, used_up(scene, rule, place));
    if (over) continue;
    Turn::Mark mark = scene.turn.mark();
    auto done = act(scene, rule.then[place]);
    if (done) {
      last = std::move(*done);
      last.word = "fired";
      continue;
    }
    scene.turn.rewind(mark);
    if (!first_error) first_error = std::move(done.error());
  }
  ++cell.fired;
  cell.last_fired = scene.turn.now();
  if (first_error) {
    ++cell.failed;
    cell.last_error = first_error->message;
    last.word = "failed";
    last.warning = cell.last_error;
  }
  scene.turn.write(rule_key(scene.tenant, rule.name), encode(cell));
  return last;
}

Result<std::optional<RuleCell>> read_rule(Turn& turn, std::string_view tenant,
                                          std::string_view name) {
  TRY(Cell cell, turn.read(rule_key(tenant, name)));
  if (!cell.exists()) return std::optional<RuleCell>();
  TRY(RuleCell out, decode_rule(cell.value()));
  out.version = cell.version;
  return std::optional<RuleCell>(std::move(out));
}

js::Value schedule_of(const Rule& rule, Time fired) {
  return js::object(
      {{"name", rule.name}, {"fire_time", rfc3339(fired)}, {"fire_time_unix", fired / kSecond}});
}

}  // namespace

Result<Outcome> put_rule(Ask& ask) {
  std::string_view name = ask.command.id;
  TRY_OK(check_id(name));
  TRY(js::Value body, parse_or(errc::invalid_rule, ask.command.text));
  TRY(Rule rule, parse_rule(name, body));
  TRY(TypePtr type, need_type(ask.turn, ask.tenant, rule.workflow));
  TRY_OK(check_rule(rule, *type));
  if (rule.enabled && rule.on != Rule::On::phase && !next_firing(rule, ask.turn.now()))
    return refuse(errc::invalid_rule, fmt::format("'{}' never comes", rule.on_text));
  TRY(auto before, read_rule(ask.turn, ask.tenant, name));
  RuleCell cell;
  if (before) {
    if (js::equivalent(before->rule.body, body))
      return Outcome{.version = before->version, .word = "same"};
    close_timer(ask.turn, ask.tenant, *before);
    TRY_OK(hook(ask.turn, ask.tenant, before->rule, false));
    cell.fired = before->fired;
    cell.failed = before->failed;
    cell.last_fired = before->last_fired;
  }
  cell.rule = std::move(rule);
  TRY_OK(hook(ask.turn, ask.tenant, cell.rule, true));
  open_timer(ask.turn, ask.tenant, cell);
  ask.turn.write(rule_key(ask.tenant, name), encode(cell));
  return Outcome{.word = before ? "changed" : "created"};
}

Result<Outcome> remove_rule(Ask& ask) {
  TRY(auto before, read_rule(ask.turn, ask.tenant, ask.command.id));
  if (!before)
    return refuse(errc::entity_not_found, fmt::format("no rule is called '{}'", ask.command.id));
  close_timer(ask.turn, ask.tenant, *before);
  TRY_OK(hook(ask.turn, ask.tenant, before->rule, false));
  TRY_OK(begin_round(ask.turn, ask.tenant, before->rule.name));
  ask.turn.erase(rule_key(ask.tenant, ask.command.id));
  return Outcome{.word = "removed"};
}

// command.text: {"action", "message", "caller", "schedule", "state"}.
Result<Outcome> run_action(Ask& ask) {
  TRY(js::Value body, object_of(ask.command.text, "the body"));
  const js::Value* action = body.find("action");
  if (!action) return refuse(errc::invalid_rule, "\"action\" is missing");
  TRY_OK(check_members(*action));
  Scene scene{ask.turn, ask.tenant, std::string(ask.command.type), {}, ask.turn.caller().user, 0};
  scene.variables.entity_id = ask.command.id;
  for (auto [name, to] : {std::pair{"message", &scene.variables.message},
                          std::pair{"caller", &scene.variables.caller},
                          std::pair{"schedule", &scene.variables.schedule},
                          std::pair{"state", &scene.variables.state}})
    if (const js::Value* v = body.find(name)) *to = *v;
  prepare(scene);
  return act(scene, *action);
}

Result<Outcome> run_rule(Ask& ask) {
  TRY(auto cell, read_rule(ask.turn, ask.tenant, ask.command.note));
  if (!cell)
    return refuse(errc::entity_not_found, fmt::format("no rule is called '{}'", ask.command.note));
  TRY(js::Value message, object_of(ask.command.text, "the message"));
  Scene scene{ask.turn, ask.tenant, {}, {}, {}, 0};
  scene.variables.entity_id = ask.command.id;
  scene.variables.message = std::move(message);
  scene.variables.caller = js::object({{"id", ask.turn.caller().user},
                                       {"role", ask.turn.caller().roles},
                                       {"org", ask.turn.caller().tenant}});
  scene.variables.schedule = schedule_of(cell->rule, ask.turn.now());
  prepare(scene);
  return fire_for(scene, *cell);
}

// The delivery settles whatever happens: what went wrong is the rule's to remember.
Result<Outcome> fire(Ask& ask) {
  TRY(auto cell, read_rule(ask.turn, ask.tenant, ask.command.note));
  if (!cell || !cell->rule.enabled || ask.command.expected_version > limits::kRuleDepth)
    return Outcome{.word = "over"};
  Scene scene{ask.turn, ask.tenant, {}, {}, {}, ask.command.expected_version};
  scene.variables.entity_id = ask.command.id;
  scene.variables.schedule = schedule_of(
      cell->rule, ask.command.stamp ? static_cast<Time>(ask.command.stamp) : ask.turn.now());
  prepare(scene);
  if (cell->rule.on == Rule::On::phase) {
    // Only if it is still where it was when the rule was set off.
    auto type = need_type(ask.turn, ask.tenant, ask.command.type);
    if (!type) return Outcome{.word = "over"};
    auto subject = need_instance(ask.turn, ask.tenant, *type, ask.command.id);
    if (!subject || subject->held.phase != ask.command.to) return Outcome{.word = "over"};
  }
  auto done = fire_for(scene, *cell);
  if (done) return done;
  ++cell->failed;
  cell->last_error = done.error().message;
  ask.turn.write(rule_key(ask.tenant, cell->rule.name), encode(*cell));
  return Outcome{.word = "failed"};
}

// A schedule is due: its instances are gone through page by page. The rule keeps the time it is at
// work on as `next` until the last page opens the timer after it: it never runs beside itself, and
// a rule that was changed meanwhile stops its old round.
Result<Bytes> timer(Turn& turn, std::string_view effect_id) {
  std::vector<std::string> parts = parts_of(effect_id);
  if (parts.size() != 5) return Bytes();
  TRY(auto cell, read_rule(turn, parts[1], parts[3]));
  if (!cell || std::to_string(cell->next) != parts[4]) return Bytes();
  open_sweep(turn, parts[1], *cell, {});
  return Bytes();
}

Result<Outcome> forget(Ask& ask) {
  std::string_view rule = ask.command.note;
  TRY(uint64_t round, round_of(ask.turn, ask.tenant, rule));
  const Key lead = counts_prefix(ask.tenant, rule);
  std::vector<Key> over;
  Key last;
  size_t looked_at = 0;
  TRY_OK(ask.turn.scan(
      lead,
      [&](BytesView at, const Cell& cell) {
        if (++looked_at > limits::kSweepPage) return false;
        last = at;
        if (count_in(cell).round != round) over.push_back(last);
        return true;
      },
      ask.command.id.empty() ? Key() : lead + Key(ask.command.id) + '\0'));
  for (const Key& one : over)
    ask.turn.erase(one);
  if (looked_at > limits::kSweepPage) {
    open_forget(ask.turn, ask.tenant, rule, BytesView(last).substr(lead.size()));
    return Outcome{.word = "forgetting"};
  }
  // A round without a count says nothing, once there is no rule to go on with it.
  TRY(bool counted, has_counts(ask.turn, ask.tenant, rule));
  TRY(auto again, read_rule(ask.turn, ask.tenant, rule));
  if (!counted && !again) ask.turn.erase(round_key(ask.tenant, rule));
  return Outcome{.word = "forgotten"};
}

// One page: a delivery for every instance of it that fits now.
Result<Outcome> sweep(Ask& ask) {
  const Command& c = ask.command;
  TRY(auto cell, read_rule(ask.turn, ask.tenant, c.note));
  if (!cell || static_cast<uint64_t>(cell->next) != c.stamp) return Outcome{.word = "over"};
  TRY(TypePtr type, need_type(ask.turn, ask.tenant, cell->rule.workflow));
  Bytes from = c.id.empty() ? Bytes() : instance_key(ask.tenant, type->def.name, c.id) + '\0';
  std::vector<std::string> chosen;
  std::string last;
  size_t looked_at = 0;
  TRY_OK(ask.turn.scan(
      instance_prefix(ask.tenant, type->def.name),
      [&](BytesView key, const Cell& at) {
        if (++looked_at > limits::kSweepPage) return false;
        last = parts_of(key).back();
        auto held = parse_held(at.value());
        if (!held) return true;
        Variables variables;
        variables.entity_id = last;
        variables.now = ask.turn.now();
        variables.lookup = [&] {
          return std::make_shared<const Managed>(Managed{type, std::string(held->phase)});
        };
        auto fits = holds(cell->rule.when, type.get(), held->record, variables);
        if (!fits)
          ++cell->failed, cell->last_error = fits.error().message;
        else if (*fits)
          chosen.push_back(last);
        return true;
      },
      from));
  for (const std::string& entity : chosen) {
    Command fire;
    fire.type = type->def.name;
    fire.id = entity;
    fire.note = cell->rule.name;
    fire.expected_version = 1;
    fire.stamp = c.stamp;
    deliver(ask.turn, ask.tenant, "fire", fire);
  }
  if (looked_at > limits::kSweepPage)
    open_sweep(ask.turn, ask.tenant, *cell, last);
  else
    open_timer(ask.turn, ask.tenant, *cell);
  ask.turn.write(rule_key(ask.tenant, cell->rule.name), encode(*cell));
  return Outcome{.word = "swept"};
}

}  // namespace pawl::lifecycle

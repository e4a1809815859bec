// The verbs of rules: storing and removing them, running them now, and firing them when an instance
// enters a phase or a schedule is due.

#include <fmt/format.h>

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/rule/rule_firing.h"

namespace pawl::lifecycle {

namespace {

// The due time is part of the id: a rule that was changed has another timer, and the late receipt
// of the old one matches no cell (see timer()).
std::string timer_id(std::string_view tenant, std::string_view rule, Time due) {
  return key({"lifecycle", tenant, "rule", rule, std::to_string(due)});
}

// Sets `cell.next`; the caller writes the cell.
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

// Visits the schedule's instances that follow the id `last`, in the next turn.
void deliver_sweep(Turn& turn, std::string_view tenant, const RuleCell& cell,
                   std::string_view last) {
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

// Adds the rule's name to its phase in the cell of its type, or removes it.
// Rules of a phase are listed in the type, so that a write reads no other cell to find them.
Result<void> set_phase_rule(Turn& turn, std::string_view tenant, const Rule& rule, bool on) {
  if (rule.on != Rule::On::phase) return {};
  Key at = type_key(tenant, rule.workflow);
  TRY(WorkflowTypePtr type, turn.read_as<WorkflowType>(at, decode_type));
  if (!type) return {};
  WorkflowType changed = *type;
  auto& names = changed.rules_by_phase[rule.on_text];
  std::erase(names, rule.name);
  if (on && rule.enabled) names.push_back(rule.name);
  if (names.size() > limits::kRulesOfType)
    return refuse(errc::invalid_rule,
                  fmt::format("more than {} rules wait for phase '{}' of {}", limits::kRulesOfType,
                              rule.on_text, rule.workflow));
  if (names.empty()) changed.rules_by_phase.erase(rule.on_text);
  Bytes bytes = encode(changed);
  turn.write(at, std::move(bytes), std::make_shared<const WorkflowType>(std::move(changed)));
  return {};
}

Result<js::Value> object_of(std::string_view text, std::string_view what) {
  if (text.empty()) return js::Value(js::Object());
  TRY(js::Value value, parse_or(errc::invalid_rule, text));
  if (!value.is_object())
    return refuse(errc::invalid_rule, fmt::format("{} must be an object", what));
  return value;
}

js::Value schedule_of(const Rule& rule, Time fired) {
  return js::object(
      {{"name", rule.name}, {"fire_time", rfc3339(fired)}, {"fire_time_unix", fired / kSecond}});
}

struct SweptPage {
  std::vector<std::string> matching;  // ids of the instances that the rule fires for
  std::string last;                   // the last id of the page
  bool more = false;
};

// Tests the rule's conditions on one page of instances. A condition that cannot be evaluated counts
// as a failure of the rule.
Result<SweptPage> sweep_page(CommandContext& context, const WorkflowTypePtr& type, RuleCell& cell) {
  SweptPage page;
  size_t visited = 0;
  const auto work = std::make_shared<size_t>(0);  // of all instances of this turn
  auto visit = [&](BytesView key, const Cell& at) {
    if (++visited > limits::kSweepPage) return false;
    page.last = parts_of(key).back();
    auto stored = decode_instance(at.value());
    if (!stored) return true;
    Variables variables;
    variables.entity_id = page.last;
    variables.work = work;
    variables.now = context.turn.now();
    variables.lookup = [&] {
      return std::make_shared<const ManagedEntity>(ManagedEntity{type, std::string(stored->phase)});
    };
    auto fits = holds(cell.rule.when, type.get(), stored->record, variables);
    if (!fits) {
      ++cell.failed;
      cell.last_error = fits.error().message;
    } else if (*fits) {
      page.matching.push_back(page.last);
    }
    return true;
  };
  std::string_view after = context.command.id;
  Bytes from;
  if (!after.empty()) from = instance_key(context.tenant, type->def.name, after) + '\0';
  TRY_OK(context.turn.scan(instance_prefix(context.tenant, type->def.name), visit, from));
  page.more = visited > limits::kSweepPage;
  return page;
}

}  // namespace

Result<Outcome> put_rule(CommandContext& context) {
  std::string_view name = context.command.id;
  TRY_OK(check_id(name));
  TRY(js::Value body, parse_or(errc::invalid_rule, context.command.text));
  TRY(Rule rule, parse_rule(name, body));
  TRY(WorkflowTypePtr type, load_type(context.turn, context.tenant, rule.workflow));
  TRY_OK(check_rule(rule, *type));
  if (rule.enabled && rule.on != Rule::On::phase && !next_firing(rule, context.turn.now()))
    return refuse(errc::invalid_rule, fmt::format("'{}' never comes", rule.on_text));
  TRY(auto before, read_rule(context.turn, context.tenant, name));
  RuleCell cell;
  if (before) {
    // Putting the same rule again keeps its timer running.
    if (js::equivalent(before->rule.body, body))
      return Outcome{.version = before->version, .result = "same"};
    close_timer(context.turn, context.tenant, *before);
    TRY_OK(set_phase_rule(context.turn, context.tenant, before->rule, false));
    cell.fired = before->fired;
    cell.failed = before->failed;
    cell.last_fired = before->last_fired;
  }
  cell.rule = std::move(rule);
  TRY_OK(set_phase_rule(context.turn, context.tenant, cell.rule, true));
  open_timer(context.turn, context.tenant, cell);
  context.turn.write(rule_key(context.tenant, name), encode(cell));
  return Outcome{.result = before ? "changed" : "created"};
}

Result<Outcome> remove_rule(CommandContext& context) {
  TRY(auto before, read_rule(context.turn, context.tenant, context.command.id));
  if (!before)
    return refuse(errc::entity_not_found,
                  fmt::format("no rule is called '{}'", context.command.id));
  close_timer(context.turn, context.tenant, *before);
  TRY_OK(set_phase_rule(context.turn, context.tenant, before->rule, false));
  TRY_OK(drop_counts(context.turn, context.tenant, before->rule.name));
  context.turn.erase(rule_key(context.tenant, context.command.id));
  return Outcome{.result = "removed"};
}

// `command.text` is {"action", "message", "caller", "schedule", "state"}.
Result<Outcome> run_action(CommandContext& context) {
  TRY(js::Value body, object_of(context.command.text, "the body"));
  const js::Value* action = body.find("action");
  if (!action) return refuse(errc::invalid_rule, "\"action\" is missing");
  TRY_OK(check_members(*action));
  RuleFiring firing{context.turn,
                    context.tenant,
                    std::string(context.command.type),
                    {},
                    context.turn.caller().user,
                    0};
  firing.variables.entity_id = context.command.id;
  set_variables(firing.variables, body);
  prepare(firing);
  return run_one_action(firing, *action);
}

// `command.note` is the rule's name and `command.text` the JSON of $message.
Result<Outcome> run_rule(CommandContext& context) {
  TRY(auto cell, read_rule(context.turn, context.tenant, context.command.note));
  if (!cell)
    return refuse(errc::entity_not_found,
                  fmt::format("no rule is called '{}'", context.command.note));
  TRY(js::Value message, object_of(context.command.text, "the message"));
  RuleFiring firing{context.turn, context.tenant, {}, {}, {}, 0};
  firing.variables.entity_id = context.command.id;
  firing.variables.message = std::move(message);
  firing.variables.caller = js::object({{"id", context.turn.caller().user},
                                        {"role", context.turn.caller().roles},
                                        {"org", context.turn.caller().tenant}});
  firing.variables.schedule = schedule_of(cell->rule, context.turn.now());
  prepare(firing);
  return fire_rule(firing, *cell);
}

// A delivered firing always succeeds as a command: the rule's cell records what went wrong.
Result<Outcome> fire(CommandContext& context) {
  TRY(auto cell, read_rule(context.turn, context.tenant, context.command.note));
  // In this verb `expected_version` is the depth of the chain of rules, `note` the rule's name,
  // `to` the phase that was entered, and `stamp` the time of the schedule.
  if (!cell || !cell->rule.enabled || context.command.expected_version > limits::kRuleDepth)
    return Outcome{.result = "over"};
  RuleFiring firing{context.turn, context.tenant, {}, {}, {}, context.command.expected_version};
  firing.variables.entity_id = context.command.id;
  firing.variables.schedule =
      schedule_of(cell->rule, context.command.stamp ? static_cast<Time>(context.command.stamp)
                                                    : context.turn.now());
  prepare(firing);
  if (cell->rule.on == Rule::On::phase) {
    // The rule does not fire when the instance has left the phase that triggered it.
    auto type = load_type(context.turn, context.tenant, context.command.type);
    if (!type) return Outcome{.result = "over"};
    auto loaded = load_instance(context.turn, context.tenant, *type, context.command.id);
    if (!loaded || loaded->stored.phase != context.command.to) return Outcome{.result = "over"};
  }
  auto done = fire_rule(firing, *cell);
  if (done) return done;
  ++cell->failed;
  cell->last_error = done.error().message;
  context.turn.write(rule_key(context.tenant, cell->rule.name), encode(*cell));
  return Outcome{.result = "failed"};
}

// A schedule is due: its instances are visited page by page. The rule's `next` stays the due time
// until the last page opens the timer for the one after it. So a schedule never overlaps with
// itself, and a rule that changes in between stops the old visit.
Result<Bytes> timer(Turn& turn, std::string_view effect_id) {
  std::vector<std::string> parts = parts_of(effect_id);
  if (parts.size() != 5) return Bytes();
  TRY(auto cell, read_rule(turn, parts[1], parts[3]));
  if (!cell || std::to_string(cell->next) != parts[4]) return Bytes();
  deliver_sweep(turn, parts[1], *cell, {});
  return Bytes();
}

// Visits one page of the schedule's instances and delivers a firing for each that matches.
Result<Outcome> sweep(CommandContext& context) {
  const Command& c = context.command;
  TRY(auto cell, read_rule(context.turn, context.tenant, c.note));
  if (!cell || static_cast<uint64_t>(cell->next) != c.stamp) return Outcome{.result = "over"};
  TRY(WorkflowTypePtr type, load_type(context.turn, context.tenant, cell->rule.workflow));
  TRY(SweptPage page, sweep_page(context, type, *cell));
  for (const std::string& entity : page.matching) {
    Command fire;
    fire.type = type->def.name;
    fire.id = entity;
    fire.note = cell->rule.name;
    // The depth: a schedule begins a chain.
    fire.expected_version = 1;
    fire.stamp = c.stamp;
    deliver(context.turn, context.tenant, "fire", fire);
  }
  if (page.more)
    deliver_sweep(context.turn, context.tenant, *cell, page.last);
  else
    open_timer(context.turn, context.tenant, *cell);
  context.turn.write(rule_key(context.tenant, cell->rule.name), encode(*cell));
  return Outcome{.result = "swept"};
}

}  // namespace pawl::lifecycle

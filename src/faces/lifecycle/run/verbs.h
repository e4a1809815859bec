#pragma once
// Shared by the verbs of the lifecycle program: loading a type or an instance, checking a
// transition, and writing an instance.

#include "faces/lifecycle/rule/rules.h"
#include "faces/lifecycle/run/command.h"
#include "faces/lifecycle/run/stored_instance.h"
#include "kernel/turn.h"

namespace pawl::lifecycle {

// One command, its turn and the caller's tenant.
struct CommandContext {
  Turn& turn;
  std::string tenant;
  Command command;
};

Result<WorkflowTypePtr> load_type(Turn& turn, std::string_view tenant, std::string_view name);

struct LoadedInstance {
  WorkflowTypePtr type;
  std::string tenant, id;
  Key key;
  Cell cell;
  StoredInstance stored;  // points into `cell`
};
// Errors: bad_id, entity_not_found, corrupt_value.
Result<LoadedInstance> load_instance(Turn& turn, std::string_view tenant, WorkflowTypePtr type,
                                     std::string_view id);

// Checks that the type declares the phase `to`. Verbs call it before they read the instance.
Result<void> check_target(const WorkflowType& type, std::string_view to);
// Checks that an instance in phase `from` may move to `to`: `from` is not terminal, and the edge is
// declared.
Result<void> check_edge(const dynamic_type& def, std::string_view id, std::string_view from,
                        std::string_view to);

// The author of a write to an instance, and the reason.
struct WriteCause {
  source triggered = source::framework;
  std::string_view note{};
  std::string caller{};
  bool event = false;  // the write is part of the history
  uint64_t stamp = 0;  // 0: drawn from the dice
  uint64_t depth = 0;  // how many rules triggered one another before this write
};

// Writes the instance and triggers the rules of its phase when it has entered that phase.
Outcome save(Turn& turn, const LoadedInstance& loaded, std::string_view record_bytes,
             const WriteCause& cause);
// Moves the instance to the phase `to` and sets further fields, in one write.
Outcome move(Turn& turn, const LoadedInstance& loaded, std::string_view to, FieldValues sets,
             const WriteCause& cause);

// Sends a command to this program itself. It runs in a later turn, after this one is durable.
void deliver(Turn& turn, std::string_view tenant, std::string_view verb, const Command& command);

// The terminal phase that `complete` without a target moves to.
struct TerminalChoice {
  std::string phase, warning;
};
Result<TerminalChoice> choose_terminal_phase(const WorkflowType& type, std::string_view id,
                                             std::string_view from);

// The verbs of rules, in rule/rule_verbs.cc and rule/firing_counts.cc.
Result<Outcome> put_rule(CommandContext& context);
Result<Outcome> remove_rule(CommandContext& context);
Result<Outcome> run_action(CommandContext& context);
Result<Outcome> run_rule(CommandContext& context);  // for one instance, now
Result<Outcome> fire(CommandContext& context);      // delivered by save() or sweep()
Result<Outcome> sweep(CommandContext& context);     // one page of a schedule's instances
Result<Outcome> forget(CommandContext& context);    // one page of a removed rule's counts
// A schedule is due; `effect_id` is that of its timer.
Result<Bytes> timer(Turn& turn, std::string_view effect_id);

}  // namespace pawl::lifecycle

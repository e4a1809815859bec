#pragma once
// What the verbs of the program share: the instance at hand, the checks on a move, the one way in
// which an instance is written.

#include "faces/lifecycle/rule/rules.h"
#include "faces/lifecycle/run/command.h"
#include "faces/lifecycle/run/held.h"
#include "kernel/turn.h"

namespace pawl::lifecycle {

// One command and the tenant it is for.
struct Ask {
  Turn& turn;
  std::string tenant;
  Command command;
};

Result<TypePtr> need_type(Turn& turn, std::string_view tenant, std::string_view name);

struct Subject {
  TypePtr type;
  std::string tenant, id;
  Key key;
  Cell cell;
  Held held;  // views into the cell
};
Result<Subject> need_instance(Turn& turn, std::string_view tenant, TypePtr type,
                              std::string_view id);

// The target is a phase of the type at all; asked before anything is read.
Result<void> check_target(const Type& type, std::string_view to);
// From where the instance stands: terminal first, then the edge.
Result<void> check_edge(const dynamic_type& def, std::string_view id, std::string_view from,
                        std::string_view to);

struct Why {
  source triggered = source::framework;
  std::string_view note{};
  std::string caller{};
  bool event = false;  // belongs into the history
  uint64_t stamp = 0;  // 0: drawn from the dice
  uint64_t depth = 0;  // of rules that set off rules
};

// Writes the instance and sets off the rules that wait for its phase.
Outcome save(Turn& turn, const Subject& subject, std::string_view record_bytes, const Why& why);
// The phase and further fields in one write.
Outcome move(Turn& turn, const Subject& subject, std::string_view to, Sets sets, const Why& why);

// A command of our own for a turn after this one is durable.
void deliver(Turn& turn, std::string_view tenant, std::string_view verb, const Command& command);

// Where complete() goes from here.
struct Ending {
  std::string to, warning;
};
Result<Ending> choose_ending(const Type& type, std::string_view id, std::string_view from);

// Verbs of rules; see rule_verbs.cc.
Result<Outcome> put_rule(Ask& ask);
Result<Outcome> remove_rule(Ask& ask);
Result<Outcome> run_action(Ask& ask);
Result<Outcome> run_rule(Ask& ask);  // now, for one instance, with a message
Result<Outcome> fire(Ask& ask);      // the delivery that save() or a schedule opened
Result<Outcome> sweep(Ask& ask);     // one page of a schedule's instances
Result<Outcome> forget(Ask& ask);    // one page of a removed rule's counts
Result<Bytes> timer(Turn& turn, std::string_view effect_id);

}  // namespace pawl::lifecycle

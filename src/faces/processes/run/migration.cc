#include "faces/processes/run/migration.h"

namespace pawl::processes {

MigrationPlan plan_migration(const Instance& instance, const Definition& from, const Definition& to,
                             const json::Value* mapping) {
  MigrationPlan plan;
  auto target_of = [&](const std::string& id) {
    const json::Value* mapped = mapping ? mapping->find(id) : nullptr;
    return mapped && mapped->is_string() ? mapped->string() : id;
  };
  for (const Step& s : from.steps)
    plan.steps.push_back(to.find(target_of(s.id)));
  if (instance.status == Status::completed || instance.status == Status::cancelled)
    plan.problems.push_back("it is already " + std::string(status_name(instance.status)));
  auto check = [&](uint32_t step) {
    const Step& old = from.steps[step];
    uint32_t target = plan.steps[step];
    if (target == kNoStep) {
      plan.problems.push_back("step \"" + old.id + "\" has no counterpart in version " +
                              std::to_string(to.version) + "; map it in \"steps\"");
      return false;
    }
    if (to.steps[target].kind != old.kind) {
      plan.problems.push_back("step \"" + old.id + "\" is a " + old.type + " but \"" +
                              to.steps[target].id + "\" is a " + to.steps[target].type);
      return false;
    }
    return true;
  };
  for (const Token& t : instance.tokens)
    if (check(t.step))
      plan.moves.push_back({from.steps[t.step].id, to.steps[plan.steps[t.step]].id});
  for (const Scope& s : instance.scopes) {
    if (!check(s.gateway)) continue;
    uint32_t join = to.steps[plan.steps[s.gateway]].join;
    for (const Token& t : instance.tokens)
      if (t.scope == s.id && from.steps[t.step].kind == Kind::join_gateway &&
          t.state == TokenState::running && plan.steps[t.step] != kNoStep &&
          plan.steps[t.step] != join)
        plan.problems.push_back("gateway \"" + from.steps[s.gateway].id + "\" waits at \"" +
                                from.steps[t.step].id + "\", which would be \"" +
                                to.steps[plan.steps[t.step]].id + "\", but its join in version " +
                                std::to_string(to.version) + " is \"" + to.steps[join].id +
                                "\"; map the join in \"steps\"");
    if (to.steps[plan.steps[s.gateway]].parallel.size() < from.steps[s.gateway].parallel.size())
      plan.problems.push_back("gateway \"" + from.steps[s.gateway].id +
                              "\" has fewer branches in version " + std::to_string(to.version));
  }
  return plan;
}

}  // namespace pawl::processes

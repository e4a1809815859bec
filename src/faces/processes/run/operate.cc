// The operations of operators on instances: one row each. The instance's history keeps the
// operator's reason.

#include "faces/processes/run/migration.h"
#include "faces/processes/run/program.h"
#include "json/merge.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

struct Order {
  TurnContext& context;
  const json::Value& body;
  Walk& walk;
  Instance& instance;
  const Definition& definition;
  std::string reason;
};

std::unexpected<Error> refuse(const Instance& instance, std::string_view what) {
  return fail(Code::conflict, "WRONG_STATUS",
              "instance \"" + instance.id + "\" is " + std::string(status_name(instance.status)) +
                  (instance.paused ? " and paused" : "") + ": " + std::string(what));
}

Result<void> set_variables(Order& o) {
  const json::Value* set = o.body.find("variables");
  const json::Value* remove = o.body.find("remove");
  if (!set && !remove) return {};
  json::Object& variables = o.walk.edit();
  if (set && set->is_object()) json::merge_shallow(variables, set->object());
  if (remove && remove->is_array())
    for (const json::Value& name : remove->array())
      if (name.is_string()) variables.erase(name.string());
  return {};
}

Result<void> retry(Order& o) {
  if (o.instance.status != Status::failed)
    return refuse(o.instance, "only a FAILED instance can be retried");
  if (o.instance.tokens.empty())
    return refuse(o.instance, "its steps were undone; restart it as a new instance");
  if (std::string_view step = o.body.string_or("stepId"); !step.empty()) {
    const Token* failed = o.walk.failed_token();
    if (!failed || step_of(o.instance, o.definition, failed->step).id != step)
      return fail(
          Code::conflict, "NOT_THERE",
          "instance \"" + o.instance.id + "\" did not fail at step \"" + std::string(step) + "\"");
  }
  TRY_OK(set_variables(o));
  o.walk.retry();
  return {};
}

Result<void> edit(Order& o) {
  if (o.instance.status == Status::completed || o.instance.status == Status::cancelled)
    return refuse(o.instance, "its variables are final");
  return set_variables(o);
}

// The token that an operation applies to: the one at the named step, or else the failed one, or
// else the only one.
Result<Token*> selected_token(Order& o, std::string_view member) {
  std::string_view step_id = o.body.string_or(member);
  if (!step_id.empty()) {
    uint32_t step = o.definition.find(step_id);
    if (Token* t = step == kNoStep ? nullptr : o.walk.any_token_at(step)) return t;
    return fail(Code::conflict, "NOT_THERE",
                "instance \"" + o.instance.id + "\" does not stand at step \"" +
                    std::string(step_id) + "\"");
  }
  if (Token* t = o.walk.failed_token()) return t;
  if (o.instance.tokens.size() == 1) return &o.instance.tokens[0];
  return fail(Code::invalid, "WHICH_STEP",
              "instance \"" + o.instance.id + "\" stands at " +
                  std::to_string(o.instance.tokens.size()) + " steps: say which with " +
                  std::string(member));
}

Result<void> relocate(Order& o, Token& token, uint32_t target) {
  TRY_OK(set_variables(o));
  // Asked before the move: when the target step fails at once, the instance stays failed.
  bool failed = o.instance.status == Status::failed;
  o.walk.move(token, target, o.reason);
  if (failed) o.walk.retry();
  return {};
}

Result<void> skip(Order& o) {
  if (o.instance.status == Status::completed || o.instance.status == Status::cancelled)
    return refuse(o.instance, "there is nothing to skip");
  if (o.instance.compensating) {
    TRY_OK(set_variables(o));
    o.walk.skip_compensation(o.reason);
    return {};
  }
  TRY(Token * token, selected_token(o, "stepId"));
  const Step& step = o.definition.steps[token->step];
  if (step.next == kNoStep)
    return fail(Code::invalid, "NO_NEXT_STEP",
                "step \"" + step.id + "\" names no next step: use move and say where to");
  return relocate(o, *token, step.next);
}

Result<void> move(Order& o) {
  if (o.instance.status == Status::completed || o.instance.status == Status::cancelled)
    return refuse(o.instance, "nothing can be moved");
  if (o.instance.compensating)
    return refuse(o.instance, "its steps are being undone; skip or cancel instead");
  uint32_t target = o.definition.find(o.body.string_or("to"));
  if (target == kNoStep)
    return fail(Code::invalid, "NO_STEP",
                "\"to\" must name a step of the definition, got \"" +
                    std::string(o.body.string_or("to")) + "\"");
  TRY(Token * token, selected_token(o, "from"));
  return relocate(o, *token, target);
}

Result<void> cancel(Order& o) {
  if (o.instance.status == Status::completed || o.instance.status == Status::cancelled)
    return refuse(o.instance, "it cannot be cancelled");
  o.walk.cancel(o.reason);
  return {};
}

// An operator undoes what an instance has done so far.
Result<void> compensate(Order& o) {
  if (o.instance.status == Status::completed || o.instance.status == Status::cancelled)
    return refuse(o.instance, "only an instance that runs or has failed can be compensated");
  if (o.instance.compensating) return refuse(o.instance, "its steps are being undone already");
  if (o.instance.done_steps.empty())
    return refuse(o.instance, "no step that it has done names a compensation");
  o.walk.compensate(o.instance.status == Status::failed ? o.instance.failure : o.reason);
  return {};
}

Result<void> pause(Order& o) {
  if (is_final(o.instance.status) || o.instance.paused)
    return refuse(o.instance, "it cannot be paused");
  o.walk.pause();
  return {};
}

Result<void> resume(Order& o) {
  if (!o.instance.paused) return refuse(o.instance, "it is not paused");
  o.walk.resume();
  return {};
}

struct Operation {
  std::string_view name;
  Result<void> (*run)(Order& order);
};
constexpr Operation kOperations[] = {
    {"retry", retry},   {"variables", edit}, {"skip", skip},     {"move", move},
    {"cancel", cancel}, {"pause", pause},    {"resume", resume}, {"compensate", compensate},
};

// A migration is not in the table because it walks under the new definition.
Result<Bytes> migrate(TurnContext& context, const json::Value& body, std::string_view id) {
  TRY(auto before, context.instance(id));
  TRY(auto from, context.definition(before->definition_id, before->version));
  uint32_t version = 0;
  if (const json::Value* v = body.find("version"); v && v->is_number())
    version = static_cast<uint32_t>(v->as_int64().value_or(0));
  if (before->compensating)
    return refuse(*before, "its steps are being undone; it cannot be migrated");
  TRY(auto to, context.definition(before->definition_id, version));
  MigrationPlan plan = plan_migration(*before, *from, *to, body.find("steps"));
  if (!plan.problems.empty())
    return fail(Code::conflict, "CANNOT_MIGRATE",
                "instance \"" + std::string(id) + "\" cannot be migrated: " + plan.problems[0]);
  Instance instance = *before;
  Walk walk(context, context.turn.now(), context.tenant, instance, *to, context.budget);
  walk.record_event("migrated from version " + std::to_string(from->version) + " to " +
                    std::to_string(to->version));
  walk.migrate(*from, plan.steps);
  if (!is_final(instance.status)) {
    // The policy of the new version holds from now on.
    if (to->key_policy && !from->key_policy) TRY_OK(context.take_key(instance, *to));
    if (from->key_policy && !to->key_policy) TRY_OK(context.release_key(instance));
  }
  TRY(InstancePtr after, context.close(instance, walk, *to, static_cast<uint8_t>(before->status)));
  return instance_json(*after, *to);
}

Result<json::Value> body_of(TurnContext& context) {
  TRY(json::Value body, json::parse(context.input.body));
  context.reason = body.string_or("reason");
  return body;
}

}  // namespace

Result<Bytes> operate(TurnContext& context) {
  TRY(json::Value body, body_of(context));
  std::string_view name = body.string_or("operation"), id = body.string_or("instanceId");
  if (name == "migrate") return migrate(context, body, id);
  for (const Operation& op : kOperations) {
    if (op.name != name) continue;
    TRY_OK(walk_instance(
        context, id,
        [&](Walk& walk, Instance& instance, const Definition& definition) -> Result<bool> {
          Order order{context, body, walk, instance, definition, context.reason};
          walk.record_event("operator: " + std::string(name));
          TRY_OK(op.run(order));
          return true;
        }));
    TRY(auto after, context.instance(id));
    TRY(auto definition, context.definition(after->definition_id, after->version));
    return instance_json(*after, *definition);
  }
  return fail(Code::invalid, "NO_OPERATION", "unknown operation \"" + std::string(name) + "\"");
}

Result<Bytes> pause_definition(TurnContext& context) {
  TRY(json::Value body, body_of(context));
  std::string id(body.string_or("definitionId"));
  TRY(auto before, context.head(id));
  DefinitionHead head = *before;
  const json::Value* paused = body.find("paused");
  head.paused = paused && paused->is_bool() && paused->boolean();
  head.pause_reason = head.paused ? context.reason : "";
  context.turn.write(head_key(context.tenant, id), encode(head),
                     std::make_shared<const DefinitionHead>(head));
  return Bytes(json::print(json::object({{"definitionId", id}, {"paused", head.paused}})));
}

Result<Bytes> pause_type(TurnContext& context) {
  TRY(json::Value body, body_of(context));
  std::string type(body.string_or("jobType"));
  const json::Value* paused = body.find("paused");
  bool pause = paused && paused->is_bool() && paused->boolean();
  if (pause)
    context.turn.write(paused_type_key(context.tenant, type), context.reason);
  else
    context.turn.erase(paused_type_key(context.tenant, type));
  return Bytes(json::print(json::object({{"jobType", type}, {"paused", pause}})));
}

}  // namespace pawl::processes

// Calls of a walk: a CALL asks for the start of a child by an effect to a cell, and the child's end
// comes back in the same way. So no turn runs two instances that wait for each other.

#include "faces/processes/definition/decision_table.h"
#include "faces/processes/limits.h"
#include "faces/processes/run/calls.h"
#include "faces/processes/run/walk.h"
#include "json/merge.h"

namespace pawl::processes {

namespace {

Result<json::Object> evaluate_all(const std::vector<Output>& outputs, const json::Object& variables,
                                  Time now, size_t& work) {
  json::Object out;
  for (const Output& o : outputs) {
    TRY_OK(check_work(work));
    auto value = evaluate(o, variables, now, work);
    if (!value)
      return fail(Code::invalid, value.error().reason,
                  "call of \"" + o.name + "\": " + value.error().message);
    out.add(o.name, std::move(*value));
  }
  return out;
}

}  // namespace

Result<void> Walk::open_call(Token& token, const Step& step) {
  const Call& call = *step.call;
  if (instance_.call_depth >= kMaxCallDepth)
    return pawl::fail(Code::exhausted, "CallDepthReached",
                      "CallDepthReached: instances may call each other " +
                          std::to_string(kMaxCallDepth) + " deep; does a workflow call itself?");
  CallCommand command{.parent_id = instance_.id,
                      .execution = token.execution,
                      .waits = call.waits,
                      .definition_id = call.definition_id,
                      .version = call.version,
                      .depth = instance_.call_depth + 1,
                      .priority = instance_.priority,
                      .fairness_key = instance_.fairness_key};
  if (call.business_key) {
    auto value = call.business_key->evaluate(variables(), now_, &budget_.work);
    if (!value)
      return pawl::fail(Code::invalid, value.error().reason,
                        "call.businessKey: " + value.error().message);
    auto text = key_text(*value);
    if (!text || text->size() > kBusinessKeyBytes)
      return pawl::fail(Code::invalid, "BusinessKeyInvalid",
                        "BusinessKeyInvalid: call.businessKey must be text, a number or a boolean "
                        "of at most " +
                            std::to_string(kBusinessKeyBytes) + " bytes");
    command.business_key = std::move(*text);
  }
  if (call.variables) {
    TRY(json::Object given, evaluate_all(*call.variables, variables(), now_, budget_.work));
    command.variables = make_variables(std::move(given))->text;
  } else {
    settle_variables();
    command.variables = instance_.variables->text;
  }
  budget_.work += command.variables.size();
  effects_.open(call_effect(tenant_, id_of(token.execution), command));
  return {};
}

void Walk::child_started(Token& token, const std::string& child_id) {
  token.child_id = child_id;
  record_event("started child " + child_id, definition_.steps[token.step].id);
}

void Walk::child_completed(Token& token, const Variables& child) {
  const Step& step = definition_.steps[token.step];
  const uint32_t execution = token.execution;
  record_event("child " + std::exchange(token.child_id, {}) + " has ended", step.id);
  if (step.call && step.call->outputs) {
    auto outputs = evaluate_all(*step.call->outputs, child.object, now_, budget_.work);
    if (!outputs) return fail(execution, outputs.error().message);
    json::merge_shallow(edit(), *outputs);
  } else if (!child.object.empty()) {
    json::merge_shallow(edit(), child.object);
  }
  complete(execution);
}

void Walk::child_failed(Token& token, const std::string& reason) {
  token.child_id.clear();
  fail(token.execution, reason);
}

void Walk::drop_call(Token& token) {
  if (token.state != TokenState::running || step_of(token).kind != Kind::call) return;
  if (token.child_id.empty())
    effects_.withdraw(call_effect_id(id_of(token.execution)));
  else
    effects_.open(cancel_child_effect(tenant_, std::exchange(token.child_id, {}), instance_.id));
}

void Walk::recheck_child(const Token& token) {
  if (token.child_id.empty()) return;
  effects_.open(recheck_effect(tenant_, id_of(token.execution), now_,
                               {instance_.id, token.execution, token.child_id}));
}

}  // namespace pawl::processes

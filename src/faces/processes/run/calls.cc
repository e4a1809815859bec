// Calls: the turns that start a child, tell its end to the parent, and cancel it with its parent.

#include "faces/processes/run/calls.h"

#include "base/codec.h"
#include "faces/processes/run/program.h"
#include "json/text.h"

namespace pawl::processes {

template <class F, FieldsOf<CallCommand> T>
void fields(F& f, T& c) {
  f.format(1);
  f(c.parent_id);
  f(c.execution);
  f(c.waits);
  f(c.definition_id);
  f(c.version);
  f(c.business_key);
  f(c.variables);
  f(c.depth);
  f(c.priority);
  f(c.fairness_key);
}
template <class F, FieldsOf<ChildCommand> T>
void fields(F& f, T& c) {
  f.format(1);
  f(c.parent_id);
  f(c.execution);
  f(c.child_id);
}
template <class F, FieldsOf<CancelChildCommand> T>
void fields(F& f, T& c) {
  f.format(1);
  f(c.child_id);
  f(c.parent_id);
}

namespace {

Effect to_cell(const std::string& tenant, std::string id, std::string_view verb, Bytes body) {
  return {std::move(id),     To::cell, std::string(kProgram), tenant,
          std::string(verb), 0,        std::move(body)};
}
std::string effect_id(std::string_view kind, std::string_view rest) {
  return std::string(kProgram) + ":" + std::string(kind) + ":" + std::string(rest);
}

}  // namespace

Result<CallCommand> decode_call(BytesView bytes) {
  return decode_fields<CallCommand>(bytes, "a stored call");
}
Result<ChildCommand> decode_child(BytesView bytes) {
  return decode_fields<ChildCommand>(bytes, "a stored end of a child");
}
Result<CancelChildCommand> decode_cancel_child(BytesView bytes) {
  return decode_fields<CancelChildCommand>(bytes, "a stored cancellation of a child");
}

std::string call_effect_id(std::string_view execution_id) {
  return effect_id("call", execution_id);
}
Effect call_effect(const std::string& tenant, std::string_view execution_id,
                   const CallCommand& command) {
  return to_cell(tenant, call_effect_id(execution_id), verb::call, encode_fields(command));
}
Effect child_ended_effect(const std::string& tenant, const ChildCommand& command) {
  return to_cell(tenant, effect_id("child", command.child_id), verb::child_ended,
                 encode_fields(command));
}
Effect recheck_effect(const std::string& tenant, std::string_view execution_id, Time now,
                      const ChildCommand& command) {
  return to_cell(tenant,
                 effect_id("recheck", std::string(execution_id) + ":" + std::to_string(now)),
                 verb::child_ended, encode_fields(command));
}
Effect cancel_child_effect(const std::string& tenant, const std::string& child_id,
                           const std::string& parent_id) {
  return to_cell(tenant, effect_id("cancel", child_id), verb::cancel_child,
                 encode_fields(CancelChildCommand{child_id, parent_id}));
}

namespace {

// A parent that was deleted needs nothing any more.
template <class Act>
Result<void> walk_if_there(TurnContext& context, const std::string& id, Act&& act) {
  auto done = walk_instance(context, id, std::forward<Act>(act));
  if (!done && done.error().is(kNoInstance)) return {};
  return done;
}

// Starts the child, or returns why not; then nothing of it is left in the turn.
Result<InstancePtr> start_child(TurnContext& context, const CallCommand& command) {
  TRY(json::Value variables,
      json::parse(command.variables, {.max_bytes = command.variables.size() + 1}));
  StartCommand start{.definition_id = command.definition_id,
                     .version = command.version,
                     .business_key = command.business_key,
                     .variables = make_variables(std::move(variables.object()))};
  if (command.priority) start.priority = command.priority;
  if (!command.fairness_key.empty()) start.fairness_key = command.fairness_key;
  start.parent_id = command.parent_id;
  start.parent_execution = command.waits ? command.execution : 0;
  start.call_depth = command.depth;
  Turn::Mark mark = context.turn.mark();
  auto child = context.start(start, nullptr);
  if (!child) {
    context.turn.rewind(mark);
    context.limits = {};
  }
  return child;
}

std::string reason_of(const Instance& child) {
  std::string what = child.status == Status::failed ? "ChildFailed" : "ChildCancelled";
  return what + ": instance \"" + child.id + "\" of definition \"" + child.definition_id + "\"" +
         (child.failure.empty() ? "" : ": " + child.failure);
}

}  // namespace

// A child that nobody waits for. Its parent may have ended, or be deleted.
static Result<Bytes> call_detached(TurnContext& context, const CallCommand& command) {
  auto child = start_child(context, command);
  auto act = [&](Walk& walk, Instance&, const Definition&) -> Result<bool> {
    walk.record_event(child ? "started child " + (*child)->id + ", which nobody waits for"
                            : "ChildNotStarted: " + child.error().message);
    return true;
  };
  TRY_OK(walk_if_there(context, command.parent_id, act));
  return Bytes();
}

Result<Bytes> call_child(TurnContext& context) {
  TRY(CallCommand command, decode_call(context.input.body));
  if (!command.waits) return call_detached(context, command);
  auto act = [&](Walk& walk, Instance&, const Definition&) -> Result<bool> {
    Token* token = walk.token(command.execution);
    // A CALL that was left has withdrawn its effect.
    if (!token || token->state != TokenState::running) return false;
    auto child = start_child(context, command);
    if (child)
      walk.child_started(*token, (*child)->id);
    else
      walk.child_failed(*token, "ChildNotStarted: " + child.error().message);
    return true;
  };
  TRY_OK(walk_if_there(context, command.parent_id, act));
  return Bytes();
}

Result<Bytes> child_ended(TurnContext& context) {
  TRY(ChildCommand command, decode_child(context.input.body));
  auto found = context.instance(command.child_id);
  if (!found && !found.error().is(kNoInstance)) return std::unexpected(std::move(found.error()));
  InstancePtr child = found ? std::move(*found) : nullptr;
  if (child && !is_final(child->status)) return Bytes();
  auto act = [&](Walk& walk, Instance& parent, const Definition&) -> Result<bool> {
    Token* token = walk.token(command.execution);
    // A failed parent looks again when it goes on.
    if (is_final(parent.status) || !token || token->state != TokenState::running ||
        token->child_id != command.child_id)
      return false;
    if (!child)
      walk.child_failed(*token, "ChildFailed: instance \"" + command.child_id + "\" was deleted");
    else if (child->status == Status::completed)
      walk.child_completed(*token, *child->variables);
    else
      walk.child_failed(*token, reason_of(*child));
    return true;
  };
  Turn::Mark mark = context.turn.mark();
  auto done = walk_if_there(context, command.parent_id, act);
  if (!done && done.error().code == Code::too_large) {
    // Nobody is there to refuse the variables to, and the effect would come again for ever.
    context.turn.rewind(mark);
    context.limits = {};
    std::string reason = "ChildFailed: instance \"" + command.child_id +
                         "\" has a result that cannot be taken: " + done.error().message;
    done = walk_if_there(context, command.parent_id,
                         [&](Walk& walk, Instance&, const Definition&) -> Result<bool> {
                           walk.child_failed(*walk.token(command.execution), reason);
                           return true;
                         });
  }
  TRY_OK(done);
  return Bytes();
}

Result<Bytes> cancel_child(TurnContext& context) {
  TRY(CancelChildCommand command, decode_cancel_child(context.input.body));
  context.reason = "cancelled with its parent " + command.parent_id;
  auto act = [&](Walk& walk, Instance& child, const Definition&) -> Result<bool> {
    if (child.status == Status::completed || child.status == Status::cancelled) return false;
    walk.cancel(context.reason);
    return true;
  };
  TRY_OK(walk_if_there(context, command.child_id, act));
  return Bytes();
}

}  // namespace pawl::processes

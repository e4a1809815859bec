// Signals by name and correlation key: one that nobody waits for is kept, and the WAIT that comes
// next takes it. Each signal continues one WAIT.

#include "faces/processes/limits.h"
#include "faces/processes/run/program.h"
#include "faces/processes/state/signal.h"
#include "json/merge.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

Result<Mailbox> load_mailbox(TurnContext& context, std::string_view name, std::string_view key) {
  TRY(auto found,
      context.turn.read_as<Mailbox>(mailbox_key(context.tenant, name, key), decode_mailbox));
  return found ? *found : Mailbox{};
}

void save_mailbox(TurnContext& context, std::string_view name, std::string_view key,
                  const Mailbox& mailbox) {
  Key cell = mailbox_key(context.tenant, name, key);
  if (mailbox.signal_ids.empty())
    context.turn.erase(cell);
  else
    context.turn.write(cell, encode(mailbox));
}

Result<std::shared_ptr<const KeptSignal>> load_signal(TurnContext& context,
                                                      std::string_view signal_id) {
  return context.turn.read_as<KeptSignal>(kept_signal_key(context.tenant, signal_id),
                                          decode_kept_signal);
}

// Takes the oldest kept signal out of its mailbox; null when there is none.
Result<VariablesPtr> take_oldest(TurnContext& context, const Subscription& subscription) {
  TRY(Mailbox mailbox, load_mailbox(context, subscription.name, subscription.key));
  if (mailbox.signal_ids.empty()) return VariablesPtr();
  std::string id = mailbox.signal_ids.front();
  TRY(auto signal, load_signal(context, id));
  mailbox.signal_ids.erase(mailbox.signal_ids.begin());
  save_mailbox(context, subscription.name, subscription.key, mailbox);
  context.turn.withdraw(signal_timer_id(context.tenant, id));
  context.turn.erase(kept_signal_key(context.tenant, id));
  if (!signal) return fail(Code::corrupt, "BAD_MAILBOX", "kept signal \"" + id + "\" is missing");
  TRY(json::Value variables,
      json::parse(signal->variables, {.max_bytes = signal->variables.size() + 1}));
  return make_variables(std::move(variables.object()));
}

// The execution that has waited longest; empty when there is none.
Result<std::string> oldest_waiter(TurnContext& context, const PublishCommand& command) {
  std::string execution;
  TRY_OK(context.turn.scan(waiter_prefix(context.tenant, command.name, command.key),
                           [&](BytesView key, const Cell&) {
                             execution = parts_of(key).back();
                             return false;
                           }));
  return execution;
}

Result<Bytes> deliver(TurnContext& context, const PublishCommand& command,
                      std::string_view execution_id) {
  auto execution = parse_ordinal_id(execution_id);
  CHECK(execution);
  std::string step_id;
  TRY_OK(walk_instance(context, execution->instance_id,
                       [&](Walk& walk, Instance&, const Definition& definition) -> Result<bool> {
                         const Token* token = walk.token(execution->ordinal);
                         if (!token)
                           return fail(Code::corrupt, "BAD_WAITER",
                                       "a registered WAIT is not there any more");
                         const Step& step = definition.steps[token->step];
                         step_id = step.id;
                         TRY_OK(check_outputs(context, step, *command.variables));
                         walk.record_event("signal \"" + command.name + "\" arrived", step.id);
                         if (!command.variables->object.empty())
                           json::merge_shallow(walk.edit(), command.variables->object);
                         walk.complete(execution->ordinal);
                         return true;
                       }));
  return Bytes(json::print(json::object(
      {{"delivered", true}, {"instanceId", execution->instance_id}, {"stepId", step_id}})));
}

Result<Bytes> keep(TurnContext& context, const PublishCommand& command) {
  if (command.ttl_ns <= 0)
    return fail(Code::conflict, "NOT_WAITING",
                "no WAIT for signal \"" + command.name + "\" with correlation key \"" +
                    command.key + "\" is open: send it again later, or let it be kept with a ttl");
  TRY(Mailbox mailbox, load_mailbox(context, command.name, command.key));
  if (mailbox.signal_ids.size() >= kKeptSignals)
    return fail(Code::exhausted, "SIGNALS_FULL",
                std::to_string(kKeptSignals) + " signals \"" + command.name +
                    "\" are kept for correlation key \"" + command.key +
                    "\" already: wait until an instance takes them");
  Turn& turn = context.turn;
  std::string id = turn.dice().ulid(turn.now());
  const Time now = turn.now();
  const Time until = command.ttl_ns > INT64_MAX - now ? INT64_MAX : now + command.ttl_ns;
  turn.write_new(kept_signal_key(context.tenant, id),
                 encode(KeptSignal{command.name, command.key, now, until, context.input.caller.user,
                                   command.variables->text}));
  mailbox.signal_ids.push_back(id);
  save_mailbox(context, command.name, command.key, mailbox);
  turn.open({.id = signal_timer_id(context.tenant, id),
             .to = To::clock,
             .program = std::string(kProgram),
             .tenant = context.tenant,
             .due = until});
  return Bytes(
      json::print(json::object({{"delivered", false}, {"id", id}, {"until", rfc3339(until, 6)}})));
}

}  // namespace

VariablesPtr TurnContext::subscribe(const Subscription& subscription,
                                    const std::string& execution_id) {
  if (!limits) return nullptr;
  auto taken = take_oldest(*this, subscription);
  if (!taken) {
    limits = fail(std::move(taken.error()));
    return nullptr;
  }
  if (!*taken) turn.write(waiter_key(tenant, subscription, execution_id), "\x01");
  return std::move(*taken);
}

void TurnContext::unsubscribe(const Subscription& subscription, const std::string& execution_id) {
  turn.erase(waiter_key(tenant, subscription, execution_id));
}

Result<Bytes> publish_signal(TurnContext& context) {
  TRY(auto command, command<PublishCommand>(context.input, decode_publish));
  TRY(std::string execution, oldest_waiter(context, *command));
  return execution.empty() ? keep(context, *command) : deliver(context, *command, execution);
}

Result<void> expire_signal(TurnContext& context, std::string_view signal_id) {
  TRY(auto signal, load_signal(context, signal_id));
  if (!signal) return {};
  TRY(Mailbox mailbox, load_mailbox(context, signal->name, signal->key));
  std::erase(mailbox.signal_ids, signal_id);
  save_mailbox(context, signal->name, signal->key, mailbox);
  context.turn.erase(kept_signal_key(context.tenant, signal_id));
  return {};
}

Result<Bytes> drop_signal(TurnContext& context) {
  const std::string& id = context.input.body;
  TRY(auto signal, load_signal(context, id));
  if (!signal)
    return fail(Code::not_found, "NO_SIGNAL",
                "no signal \"" + id + "\" is kept: it was taken, or its time is over");
  TRY_OK(expire_signal(context, id));
  context.turn.withdraw(signal_timer_id(context.tenant, id));
  return Bytes();
}

}  // namespace pawl::processes

// Signals of a walk: those that came before their WAIT, and WAITs that are registered for signals
// by name and correlation key.

#include "faces/processes/limits.h"
#include "faces/processes/run/walk.h"
#include "json/merge.h"

namespace pawl::processes {

namespace {

Result<std::string> correlation_key(const Step& step, const Walk& walk, const Instance& instance,
                                    size_t& work) {
  if (!step.correlation_key) return instance.business_key;
  auto value = step.correlation_key->evaluate(walk.variables(), walk.now(), &work);
  if (!value)
    return fail(Code::invalid, value.error().reason, "correlationKey: " + value.error().message);
  auto text = key_text(*value);
  if (!text || text->size() > kBusinessKeyBytes)
    return fail(Code::invalid, "CorrelationKeyInvalid",
                "CorrelationKeyInvalid: correlationKey must be text, a number or a boolean of at "
                "most " +
                    std::to_string(kBusinessKeyBytes) + " bytes");
  return std::move(*text);
}

}  // namespace

Result<VariablesPtr> Walk::next_kept_signal(Token& token, const Step& step) {
  auto& kept = instance_.kept_signals;
  auto mine = std::find_if(kept.begin(), kept.end(),
                           [&](const Instance::KeptSignal& s) { return s.step == token.step; });
  if (mine != kept.end()) {
    VariablesPtr variables = std::move(mine->variables);
    kept.erase(mine);
    return variables;
  }
  if (step.signal.empty()) return VariablesPtr();
  Subscription subscription{.name = step.signal, .since = now_};
  TRY(subscription.key, correlation_key(step, *this, instance_, budget_.work));
  VariablesPtr variables = effects_.subscribe(subscription, id_of(token.execution));
  if (!variables) token.subscription = std::move(subscription);
  return variables;
}

// A signal is checked when it comes, but its WAIT may have another schema. Then nobody is there to
// refuse it to, and it is dropped.
Result<bool> Walk::take_kept_signal(Token& token, const Step& step) {
  while (true) {
    TRY_OK(check_work());
    TRY(VariablesPtr variables, next_kept_signal(token, step));
    if (!variables) return false;
    size_t visits = 0;
    auto fits = step.outputs_schema ? step.outputs_schema->check(json::Value(variables->object),
                                                                 visits, kSchemaVisits)
                                    : Result<void>();
    budget_.work += visits * kWorkPerVisit;
    if (!fits) {
      record_event("a kept signal was dropped, because it does not match the outputsSchema: " +
                       fits.error().message,
                   step.id);
      continue;
    }
    if (variables->text.size() + instance_.variables->text.size() > kVariablesBytes) {
      record_event("a kept signal was dropped, because the variables would be too large", step.id);
      continue;
    }
    record_event("took a signal that was kept", step.id);
    if (!variables->object.empty()) json::merge_shallow(edit(), variables->object);
    return true;
  }
}

void Walk::keep_signal(uint32_t step, const VariablesPtr& variables) {
  instance_.kept_signals.push_back({step, variables});
  record_event("signal kept", definition_.steps[step].id);
}

void Walk::unsubscribe(Token& token) {
  if (!token.subscription) return;
  effects_.unsubscribe(*token.subscription, id_of(token.execution));
  token.subscription.reset();
}

void Walk::resume_waits(const std::vector<uint32_t>& executions) {
  for (uint32_t execution : executions) {
    Token* token = this->token(execution);
    if (!token || token->state != TokenState::running || is_final(instance_.status)) continue;
    auto signalled = take_kept_signal(*token, definition_.steps[token->step]);
    if (!signalled)
      fail(execution, signalled.error().message);
    else if (*signalled)
      complete(execution);
  }
}

}  // namespace pawl::processes

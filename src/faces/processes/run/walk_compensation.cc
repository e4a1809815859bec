// Compensation: the steps that are done are undone in reverse, one job at a time. A step is undone
// once; when its compensation fails, the instance fails there, and a retry tries it again.

#include "faces/processes/definition/decision_table.h"
#include "faces/processes/limits.h"
#include "faces/processes/run/walk.h"
#include "json/text.h"

namespace pawl::processes {

Result<void> Walk::remember_done(const Token& token, const Step& step) {
  if (!step.compensation) return {};
  if (instance_.done_steps.size() >= kMaxCompensations)
    return pawl::fail(Code::exhausted, "CompensationLimitReached",
                      "CompensationLimitReached: an instance can undo " +
                          std::to_string(kMaxCompensations) +
                          " steps; move the body of the loop into a workflow of its own");
  Instance::DoneStep done{.step = token.step};
  if (step.compensation_variables) {
    json::Object given;
    for (const Output& o : *step.compensation_variables) {
      TRY_OK(check_work());
      auto value = evaluate(o, variables(), now_, budget_.work);
      if (!value)
        return pawl::fail(Code::invalid, value.error().reason,
                          "compensation of \"" + step.id + "\": variable \"" + o.name +
                              "\": " + value.error().message);
      given.add(o.name, std::move(*value));
    }
    done.variables = json::print(json::Value(std::move(given)));
  }
  instance_.done_steps.push_back(std::move(done));
  return {};
}

void Walk::compensate(const std::string& reason) {
  // First, because the reason may be the failure, which is cleared below.
  instance_.compensation_reason = reason;
  for (Token& t : instance_.tokens) {
    drop_effects(t);
    if (t.state == TokenState::running) record_ended(t, Execution::skipped, "compensation began");
  }
  instance_.tokens.clear();
  instance_.scopes.clear();
  instance_.kept_signals.clear();
  pending_.clear();
  instance_.suspended = instance_.paused;
  instance_.compensating = true;
  instance_.status = Status::active;
  instance_.failure.clear();
  instance_.completed = 0;
  record_event("compensation began, " + std::to_string(instance_.done_steps.size()) +
               " steps to undo: " + instance_.compensation_reason);
  compensate_next();
}

void Walk::compensate_next() {
  if (instance_.paused) return;
  const bool all_undone = instance_.done_steps.empty();
  const bool exhausted = !all_undone && instance_.ordinals + 8 >= kMaxOrdinals;
  if (all_undone || exhausted) {
    instance_.compensating = false;
    instance_.status = Status::failed;
    instance_.failure =
        (exhausted ? "CompensationFailed: ExecutionLimitReached: " : "Compensated: ") +
        instance_.compensation_reason;
    instance_.completed = now_;
    record_event(exhausted ? "compensation stopped: ExecutionLimitReached"
                           : "compensation has ended");
    return;
  }
  Token token{.step = instance_.done_steps.back().step,
              .execution = ++instance_.ordinals,
              .attempt = 1,
              .entered = now_};
  record_entered(token);
  auto opened = open_job(token, step_of(token));
  instance_.tokens.push_back(std::move(token));
  if (!opened) fail(instance_.tokens.back().execution, opened.error().message);
}

void Walk::compensation_done(Execution status, const std::string& reason) {
  for (Token& t : instance_.tokens) {
    drop_effects(t);
    if (t.state == TokenState::running) record_ended(t, status, reason);
  }
  instance_.tokens.clear();
  if (!instance_.done_steps.empty()) instance_.done_steps.pop_back();
  compensate_next();
}

void Walk::skip_compensation(const std::string& reason) {
  instance_.status = Status::active;
  instance_.failure.clear();
  instance_.completed = 0;
  instance_.suspended = instance_.paused;
  compensation_done(Execution::skipped, reason);
}

}  // namespace pawl::processes

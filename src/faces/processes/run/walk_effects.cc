// The jobs and timers of a walk: opening and withdrawing them, and what pause, resume, retry and
// migration do with them.

#include "faces/processes/run/walk.h"
#include "faces/processes/state/job.h"

namespace pawl::processes {

namespace {
// Copying variables into a job costs less than making them: with this factor the jobs of a turn
// reach the limit of its work where they reach that of its frame.
constexpr size_t kJobBytesPerWork = 4;
}  // namespace

void Walk::pause() {
  instance_.paused = true;
  suspend();
}

void Walk::resume() {
  instance_.paused = false;
  if (!is_final(instance_.status)) reactivate();
}

void Walk::retry() {
  instance_.status = Status::active;
  if (instance_.compensating) {
    // The step is still the last one that is done: it is undone again.
    instance_.failure.clear();
    instance_.completed = 0;
    instance_.tokens.clear();
    instance_.suspended = instance_.paused;
    return compensate_next();
  }
  instance_.failure.clear();
  instance_.completed = 0;
  for (Token& t : instance_.tokens)
    if (t.state == TokenState::failed) t.state = TokenState::held;
  reactivate();
}

void Walk::suspend() {
  if (instance_.suspended) return;
  for (Token& t : instance_.tokens) {
    if (t.job && t.state == TokenState::running) withdraw_job(t);
    unsubscribe(t);
    for (Token::ArmedTimer& a : t.timers) {
      effects_.withdraw(timer_effect_id(tenant_, id_of(t.execution), a.index));
      a.due = std::max<Time>(0, a.due - now_);
    }
  }
  instance_.suspended = true;
}

void Walk::reactivate() {
  if (instance_.paused) return;
  bool was_suspended = std::exchange(instance_.suspended, false);
  std::vector<Token> held;
  std::vector<uint32_t> waits;  // executions of WAITs
  uint32_t refused = 0;         // execution whose job cannot be opened
  std::string why;
  for (Token& t : instance_.tokens) {
    if (t.state == TokenState::held) held.push_back(t);
    if (t.state != TokenState::running || !was_suspended) continue;
    const Step& step = step_of(t);
    if (step.kind == Kind::wait) waits.push_back(t.execution);
    if (step.kind == Kind::call) recheck_child(t);
    if (step.kind == Kind::service_task) {
      if (auto opened = open_job(t, step); !opened) {
        refused = t.execution;
        why = opened.error().message;
      }
    }
    for (Token::ArmedTimer& a : t.timers) {
      a.due = a.due > INT64_MAX - now_ ? INT64_MAX : a.due + now_;
      effects_.open({.id = timer_effect_id(tenant_, id_of(t.execution), a.index),
                     .to = To::clock,
                     .program = std::string(kProgram),
                     .tenant = tenant_,
                     .due = a.due});
    }
  }
  std::erase_if(instance_.tokens, [](const Token& t) { return t.state == TokenState::held; });
  for (size_t i = held.size(); i > 0; --i)
    pending_.push_back({held[i - 1].step, held[i - 1].scope, held[i - 1].branch});
  if (refused) return fail(refused, why);
  run();
  resume_waits(waits);
  // It was paused between two compensations.
  if (instance_.compensating && instance_.tokens.empty()) compensate_next();
}

void Walk::migrate(const Definition& from, const std::vector<uint32_t>& steps) {
  bool was_suspended = instance_.suspended;
  if (!was_suspended) suspend();
  for (Token& t : instance_.tokens) {
    const Step& old = from.steps[t.step];
    t.step = steps[t.step];
    const Step& step = definition_.steps[t.step];
    // A timer continues when the new step has a timer at the same index. Other timers of the old
    // step are dropped, and additional timers of the new step start now.
    std::vector<Token::ArmedTimer> timers;
    for (uint32_t i = 0; i < step.timers.size() && t.state == TokenState::running; ++i) {
      Token::ArmedTimer* running = armed(t, i);
      if (running)
        timers.push_back(*running);
      else if (i >= old.timers.size())
        timers.push_back({i, add(now_, step.timers[i].duration) - now_});
    }
    t.timers = std::move(timers);
  }
  for (Scope& s : instance_.scopes) {
    s.gateway = steps[s.gateway];
    s.arrived.resize(definition_.steps[s.gateway].parallel.size());
  }
  std::vector<std::pair<uint32_t, uint32_t>> entries;
  for (auto [step, times] : instance_.entries)
    if (steps[step] != kNoStep) entries.emplace_back(steps[step], times);
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const auto& a, const auto& b) { return a.first == b.first; }),
                entries.end());
  instance_.entries = std::move(entries);
  for (Instance::KeptSignal& kept : instance_.kept_signals)
    kept.step = steps[kept.step];
  size_t dropped = std::erase_if(instance_.kept_signals, [](const Instance::KeptSignal& kept) {
    return kept.step == kNoStep;
  });
  for (Instance::DoneStep& done : instance_.done_steps)
    done.step = steps[done.step];
  size_t forgotten = std::erase_if(instance_.done_steps, [&](const Instance::DoneStep& done) {
    return done.step == kNoStep || !definition_.steps[done.step].compensation;
  });
  if (forgotten) record_event(std::to_string(forgotten) + " steps have no compensation any more");
  if (dropped) record_event(std::to_string(dropped) + " kept signals have no WAIT any more");
  instance_.version = definition_.version;
  if (!was_suspended) reactivate();
}

Result<void> Walk::open_job(Token& token, const Step& step) {
  if (!token.job) token.job = ++instance_.ordinals;
  token.limit.reset();
  // Checked for each job: a resumed instance opens many of them without entering a step.
  TRY_OK(check_work());
  if (step.limit) {
    TRY(token.limit, limit_use(*step.limit, variables(), now_, budget_.work));
  }
  settle_variables();
  const bool own = instance_.compensating && !instance_.done_steps.back().variables.empty();
  offer(token, step, 0, own ? instance_.done_steps.back().variables : instance_.variables->text);
  return {};
}

void Walk::offer(const Token& token, const Step& step, Time not_before,
                 const std::string& variables) {
  // Every job carries the variables: a turn that opens many large jobs must not fill the memory.
  budget_.work += variables.size() / kJobBytesPerWork;
  Job job{id_of(token.job),
          instance_.id,
          id_of(token.execution),
          step.id,
          step.retries - std::min(step.retries, token.tries),
          token.entered,
          variables,
          step.attempt_timeout_text};
  Effect effect{.id = job_effect_id(job.id, token.tries),
                .to = To::worker,
                .program = std::string(kProgram),
                .tenant = tenant_,
                .queue = step.job_type,
                .due = not_before,
                .body = encode(job),
                .priority = instance_.priority,
                .fairness_key = instance_.fairness_key};
  if (token.limit)
    effects_.open_limited(*token.limit, std::move(effect));
  else
    effects_.open(std::move(effect));
}

void Walk::arm_timers(Token& token, const Step& step) {
  for (uint32_t i = 0; i < step.timers.size(); ++i) {
    Time due = add(now_, step.timers[i].duration);
    token.timers.push_back({i, due});
    effects_.open({.id = timer_effect_id(tenant_, id_of(token.execution), i),
                   .to = To::clock,
                   .program = std::string(kProgram),
                   .tenant = tenant_,
                   .due = due});
  }
}

void Walk::drop_effects(Token& token) {
  if (!instance_.suspended) {
    if (token.job && token.state == TokenState::running) withdraw_job(token);
    for (const Token::ArmedTimer& a : token.timers)
      effects_.withdraw(timer_effect_id(tenant_, id_of(token.execution), a.index));
  }
  unsubscribe(token);
  drop_call(token);
  token.timers.clear();
  token.limit.reset();
}

void Walk::begin_attempt(Token& token, const std::string& worker) {
  const Step& step = step_of(token);
  if (!step.attempt_timeout || instance_.suspended) return;
  // A lease that ended without a result: the next worker has the whole time.
  drop_attempt(token);
  token.attempt_due = add(now_, *step.attempt_timeout);
  effects_.open({.id = attempt_timer_id(tenant_, id_of(token.job), ++token.leases),
                 .to = To::clock,
                 .program = std::string(kProgram),
                 .tenant = tenant_,
                 .due = token.attempt_due});
  record_event("attempt began at worker \"" + worker + "\"", step.id);
}

void Walk::drop_attempt(Token& token) {
  if (!std::exchange(token.attempt_due, 0)) return;
  effects_.withdraw(attempt_timer_id(tenant_, id_of(token.job), token.leases));
}

void Walk::withdraw_job(Token& token) {
  drop_attempt(token);
  std::string effect_id = job_effect_id(id_of(token.job), token.tries);
  if (token.limit)
    effects_.withdraw_limited(*token.limit, effect_id);
  else
    effects_.withdraw(effect_id);
}

}  // namespace pawl::processes

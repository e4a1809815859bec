#include "faces/processes/run/walk.h"

#include "faces/processes/definition/steps.h"
#include "faces/processes/limits.h"
#include "faces/processes/state/job.h"
#include "json/merge.h"

namespace pawl::processes {

Walk::Walk(Outlet& outlet, Time now, std::string tenant, Instance& instance,
           const Definition& definition, size_t& steps)
    : outlet_(outlet),
      now_(now),
      tenant_(std::move(tenant)),
      instance_(instance),
      definition_(definition),
      steps_(steps) {}

void Walk::begin(uint32_t step, std::string refused) {
  refused_ = std::move(refused);
  todo_.push_back({step, 0, 0});
  run();
}

void Walk::run() {
  while (!todo_.empty() && !is_final(instance_.status)) {
    Place place = todo_.back();
    todo_.pop_back();
    if (instance_.paused) {
      instance_.tokens.push_back({.step = place.step,
                                  .state = TokenState::held,
                                  .scope = place.scope,
                                  .branch = place.branch});
      continue;
    }
    enter(place);
  }
  // What a failure left undone stands before its step, so that a retry can go on with it.
  if (instance_.status == Status::failed)
    for (auto it = todo_.rbegin(); it != todo_.rend(); ++it)
      instance_.tokens.push_back(
          {.step = it->step, .state = TokenState::held, .scope = it->scope, .branch = it->branch});
  todo_.clear();
}

void Walk::enter(const Place& place) {
  const Step& step = definition_.steps[place.step];
  if (step.kind == Kind::join_gateway && arrive(place)) return;
  Token token{.step = place.step,
              .execution = ++instance_.ordinals,
              .attempt = instance_.enter_count(place.step),
              .entered = now_,
              .scope = place.scope,
              .branch = place.branch};
  entered(token);
  auto give_up = [&](const std::string& reason) {
    instance_.tokens.push_back(token);
    fail(token.execution, reason);
  };
  if (!refused_.empty()) return give_up(refused_);
  if (++steps_ > kStepsPerTurn)
    return give_up("StepLimitReached: more than " + std::to_string(kStepsPerTurn) +
                   " steps ran without waiting for anybody; is there a loop with no WAIT, "
                   "USER_TASK or SERVICE_TASK in it?");
  if (instance_.ordinals + 8 >= kMaxOrdinals)
    return give_up("ExecutionLimitReached: an instance may run " + std::to_string(kMaxOrdinals) +
                   " steps; chain another workflow instead of looping on");
  if (instance_.tokens.size() + todo_.size() >= kMaxTokens)
    return give_up("TokenLimitReached: an instance may stand at " + std::to_string(kMaxTokens) +
                   " steps at once");
  if (work_ > kWorkPerTurn)
    return give_up("WorkLimitReached: the expressions of one request may make " +
                   std::to_string(kWorkPerTurn) + " bytes; put a wait between the steps");
  Result<Next> next = type_of(step.kind).enter(*this, token, step);
  if (!next) return give_up(next.error().message);
  switch (next->what) {
    case Next::What::park: instance_.tokens.push_back(std::move(token)); return;
    case Next::What::go:
      ended(token, Execution::completed);
      todo_.push_back({next->step, place.scope, place.branch});
      return;
    case Next::What::fork: ended(token, Execution::completed); return fork(place, step);
    case Next::What::join:  // no gateway stands behind it: nothing to wait for
      ended(token, Execution::completed);
      todo_.push_back({step.next, place.scope, place.branch});
      return;
    case Next::What::finish: ended(token, Execution::completed); return end_instance(place.step);
  }
}

void Walk::fork(const Place& place, const Step& step) {
  Scope scope{.id = ++instance_.scope_ids,
              .gateway = place.step,
              .parent = place.scope,
              .parent_branch = place.branch};
  scope.arrived.assign(step.parallel.size(), false);
  uint32_t id = scope.id;
  instance_.scopes.push_back(std::move(scope));
  for (size_t i = step.parallel.size(); i > 0; --i)
    todo_.push_back({step.parallel[i - 1], id, static_cast<uint32_t>(i - 1)});
}

// A token reaches a join. False when no gateway around it has this join.
bool Walk::arrive(const Place& place) {
  uint32_t branch = place.branch, id = place.scope;
  Scope* scope = instance_.scope(id);
  while (scope && definition_.steps[scope->gateway].join != place.step) {
    if (branch != kBeside) branch = scope->parent_branch;
    id = scope->parent;
    scope = instance_.scope(id);
  }
  if (!scope && id) {
    // Another way into the join was faster, a boundary timer's for example: it has fired already.
    tell("reached a join that had fired", definition_.steps[place.step].id);
    return true;
  }
  if (!scope) return false;
  ++steps_;
  if (branch == kBeside) {
    tell("reached a join beside its branch, which is waited for", definition_.steps[place.step].id);
    return true;
  }
  if (branch < scope->arrived.size()) scope->arrived[branch] = true;
  bool all = std::all_of(scope->arrived.begin(), scope->arrived.end(), [](bool b) { return b; });
  auto waiting =
      std::find_if(instance_.tokens.begin(), instance_.tokens.end(),
                   [&](const Token& t) { return t.step == place.step && t.scope == scope->id; });
  // Every arrival is an execution; that of the first one lasts until the join fires.
  Token token{.step = place.step,
              .execution = ++instance_.ordinals,
              .attempt = instance_.enter_count(place.step),
              .entered = now_,
              .scope = scope->id,
              .branch = branch};
  entered(token);
  if (waiting == instance_.tokens.end())
    waiting = instance_.tokens.insert(waiting, std::move(token));
  else
    ended(token, Execution::completed);
  if (!all) return true;
  ended(*waiting, Execution::completed);
  instance_.tokens.erase(waiting);
  Place out{definition_.steps[place.step].next, scope->parent, scope->parent_branch};
  std::erase_if(instance_.scopes, [&, id = scope->id](const Scope& s) { return s.id == id; });
  // The join of a gateway around this one as well: the branch it stands in has arrived.
  for (const Scope* around = instance_.scope(out.scope); around;
       around = instance_.scope(around->parent))
    if (definition_.steps[around->gateway].join == place.step) out.step = place.step;
  todo_.push_back(out);
  return true;
}

void Walk::complete(uint32_t execution) {
  Token* token = this->token(execution);
  if (!token) return;
  const Step& step = definition_.steps[token->step];
  uint32_t next = step.next;
  if (!step.branches.empty()) {
    Result<uint32_t> target = branch_of(*this, step);
    if (!target) return fail(execution, target.error().message);
    next = *target;
  }
  drop_effects(*token);
  if (token->state == TokenState::running) ended(*token, Execution::completed);
  if (next == kNoStep && step.kind == Kind::service_task) {
    token->state = TokenState::stuck;
    return;
  }
  Place place{next, token->scope, token->branch};
  remove(execution);
  if (place.step == kNoStep) return;
  todo_.push_back(place);
  run();
}

void Walk::move(Token& token, uint32_t target, const std::string& reason) {
  drop_effects(token);
  uint32_t scope = token.scope, branch = token.branch;
  if (token.state == TokenState::running) {
    ended(token, Execution::skipped, reason);
    // Who leaves a join waits no longer: it has fired, and goes on outside its gateway.
    if (const Scope* joined = instance_.scope(scope);
        joined && definition_.steps[token.step].kind == Kind::join_gateway) {
      scope = joined->parent, branch = joined->parent_branch;
      std::erase_if(instance_.scopes, [&](const Scope& s) { return s.id == token.scope; });
    }
  }
  token = {.step = target, .state = TokenState::held, .scope = scope, .branch = branch};
  if (!is_final(instance_.status)) revive();
}

void Walk::fire(uint32_t execution, uint32_t index) {
  Token* token = this->token(execution);
  if (!token || !armed(*token, index)) return;
  const Timer& timer = definition_.steps[token->step].timers[index];
  Place place{timer.target, token->scope,
              timer.interrupting || !token->scope ? token->branch : kBeside};
  std::erase_if(token->timers, [&](const Token::Armed& a) { return a.index == index; });
  tell(timer.interrupting ? "timer interrupted" : "timer fired", definition_.steps[token->step].id);
  if (timer.interrupting) {
    drop_effects(*token);
    ended(*token, Execution::failed, "interrupted by boundary timer");
    remove(execution);
  }
  todo_.push_back(place);
  run();
}

void Walk::fail_job(uint32_t execution, const std::string& reason, bool retryable) {
  Token* token = this->token(execution);
  if (!token) return;
  const Step& step = definition_.steps[token->step];
  if (!retryable || token->tries >= step.retries) return fail(execution, reason);
  // The job keeps the variables it was made with, whatever other branches have set since.
  std::string effect_id = job_effect_id(id_of(token->job), token->tries);
  auto failed = decode_job(outlet_.body_of(effect_id));
  outlet_.withdraw(effect_id);
  ++token->tries;
  Time wait = 0;
  if (step.backoff) {
    // Whole numbers only: the same delay on every machine.
    Time max = step.backoff->max ? add(now_, *step.backoff->max) - now_ : INT64_MAX / 2;
    wait = std::min(add(now_, step.backoff->initial) - now_, max);
    for (uint32_t i = 1; i < token->tries && wait < max && wait < INT64_MAX / 2'000'000; ++i)
      wait = std::min(wait / 1000 * step.backoff->multiplier_thousandths, max);
  }
  if (!instance_.quiet)
    offer(*token, step, now_ + wait, failed ? failed->variables : instance_.variables->text);
  tell("job failed, offered again: " + reason, step.id);
}

void Walk::fail(uint32_t execution, const std::string& reason) {
  Token* token = this->token(execution);
  if (!token) return;
  drop_effects(*token);
  ended(*token, Execution::failed, reason);
  token->state = TokenState::failed;
  instance_.status = Status::failed;
  instance_.failure = reason;
  instance_.completed = now_;
  quiesce();
  run();
}

void Walk::cancel(const std::string& reason) {
  quiesce();
  for (Token& t : instance_.tokens)
    if (t.state == TokenState::running) ended(t, Execution::skipped, "cancelled");
  instance_.tokens.clear();
  instance_.scopes.clear();
  instance_.paused = instance_.quiet = false;
  instance_.status = Status::cancelled;
  instance_.failure = reason;
  instance_.completed = now_;
}

void Walk::end_instance(uint32_t step) {
  end_step_ = step;
  for (Token& t : instance_.tokens) {
    drop_effects(t);
    if (t.state == TokenState::running)
      ended(t, Execution::skipped, "the instance reached its end");
  }
  instance_.tokens.clear();
  instance_.scopes.clear();
  todo_.clear();
  instance_.status = Status::completed;
  instance_.completed = now_;
}

void Walk::pause() {
  instance_.paused = true;
  quiesce();
}

void Walk::resume() {
  instance_.paused = false;
  if (!is_final(instance_.status)) revive();
}

void Walk::retry() {
  instance_.status = Status::active;
  instance_.failure.clear();
  instance_.completed = 0;
  for (Token& t : instance_.tokens)
    if (t.state == TokenState::failed) t.state = TokenState::held;
  revive();
}

// Withdraws jobs and timers; what is left of each timer is kept.
void Walk::quiesce() {
  if (instance_.quiet) return;
  for (Token& t : instance_.tokens) {
    if (t.job && t.state == TokenState::running)
      outlet_.withdraw(job_effect_id(id_of(t.job), t.tries));
    for (Token::Armed& a : t.timers) {
      outlet_.withdraw(timer_effect_id(tenant_, id_of(t.execution), a.index));
      a.due = std::max<Time>(0, a.due - now_);
    }
  }
  instance_.quiet = true;
}

void Walk::revive() {
  if (instance_.paused) return;
  bool was_quiet = std::exchange(instance_.quiet, false);
  std::vector<Token> held;
  for (Token& t : instance_.tokens) {
    if (t.state == TokenState::held) held.push_back(t);
    if (t.state != TokenState::running || !was_quiet) continue;
    const Step& step = definition_.steps[t.step];
    if (step.kind == Kind::service_task) open_job(t, step);
    for (Token::Armed& a : t.timers) {
      a.due = a.due > INT64_MAX - now_ ? INT64_MAX : a.due + now_;
      outlet_.open({.id = timer_effect_id(tenant_, id_of(t.execution), a.index),
                    .to = To::clock,
                    .program = std::string(kProgram),
                    .tenant = tenant_,
                    .due = a.due});
    }
  }
  std::erase_if(instance_.tokens, [](const Token& t) { return t.state == TokenState::held; });
  for (size_t i = held.size(); i > 0; --i)
    todo_.push_back({held[i - 1].step, held[i - 1].scope, held[i - 1].branch});
  run();
}

void Walk::migrate(const Definition& from, const std::vector<uint32_t>& steps) {
  bool was_quiet = instance_.quiet;
  if (!was_quiet) quiesce();
  for (Token& t : instance_.tokens) {
    const Step& old = from.steps[t.step];
    t.step = steps[t.step];
    const Step& step = definition_.steps[t.step];
    // A timer goes on where the new step has one in the same place; others are armed anew or
    // dropped.
    std::vector<Token::Armed> timers;
    for (uint32_t i = 0; i < step.timers.size() && t.state == TokenState::running; ++i) {
      Token::Armed* running = armed(t, i);
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
  instance_.version = definition_.version;
  if (!was_quiet) revive();
}

json::Object& Walk::edit() {
  if (!edited_) edited_ = instance_.variables->object;
  return *edited_;
}

void Walk::set(const json::Object& outputs) {
  undo_ = undo_of(variables(), outputs);
  json::merge_shallow(edit(), outputs);
}

void Walk::settle_variables() {
  if (!edited_) return;
  instance_.variables = make_variables(std::move(*edited_));
  edited_.reset();
}

void Walk::tell(std::string event, std::string step) {
  facts_.push_back({.kind = Fact::Kind::event, .step = std::move(step), .text = std::move(event)});
}

Token* Walk::token(uint32_t execution) {
  for (Token& t : instance_.tokens)
    if (t.execution == execution && t.execution) return &t;
  return nullptr;
}

Token* Walk::token_at(uint32_t step) {
  for (Token& t : instance_.tokens)
    if (t.step == step && t.state == TokenState::running) return &t;
  return nullptr;
}

Token* Walk::any_token_at(uint32_t step) {
  for (Token& t : instance_.tokens)
    if (t.step == step) return &t;
  return nullptr;
}

Token* Walk::failed_token() {
  for (Token& t : instance_.tokens)
    if (t.state == TokenState::failed) return &t;
  return nullptr;
}

Token::Armed* Walk::armed(Token& token, uint32_t index) {
  for (Token::Armed& a : token.timers)
    if (a.index == index) return &a;
  return nullptr;
}

void Walk::open_job(Token& token, const Step& step) {
  if (!token.job) token.job = ++instance_.ordinals;
  settle_variables();
  offer(token, step, 0, instance_.variables->text);
}

void Walk::offer(const Token& token, const Step& step, Time not_before,
                 const std::string& variables) {
  Job job{id_of(token.job),
          instance_.id,
          id_of(token.execution),
          step.id,
          step.retries - std::min(step.retries, token.tries),
          token.entered,
          variables};
  outlet_.open({.id = job_effect_id(job.id, token.tries),
                .to = To::worker,
                .program = std::string(kProgram),
                .tenant = tenant_,
                .queue = step.job_type,
                .due = not_before,
                .body = encode(job)});
}

void Walk::arm_timers(Token& token, const Step& step) {
  for (uint32_t i = 0; i < step.timers.size(); ++i) {
    Time due = add(now_, step.timers[i].duration);
    token.timers.push_back({i, due});
    outlet_.open({.id = timer_effect_id(tenant_, id_of(token.execution), i),
                  .to = To::clock,
                  .program = std::string(kProgram),
                  .tenant = tenant_,
                  .due = due});
  }
}

void Walk::drop_effects(Token& token) {
  if (!instance_.quiet) {
    if (token.job && token.state == TokenState::running)
      outlet_.withdraw(job_effect_id(id_of(token.job), token.tries));
    for (const Token::Armed& a : token.timers)
      outlet_.withdraw(timer_effect_id(tenant_, id_of(token.execution), a.index));
  }
  token.timers.clear();
}

void Walk::entered(const Token& token) {
  const Step& step = definition_.steps[token.step];
  facts_.push_back({.kind = Fact::Kind::entered,
                    .ordinal = token.execution,
                    .step_kind = step.kind,
                    .attempt = token.attempt,
                    .step = step.id,
                    .text = step.kind == Kind::user_task ? step.job_type : std::string()});
}

void Walk::ended(const Token& token, Execution status, const std::string& reason) {
  const Step& step = definition_.steps[token.step];
  facts_.push_back({.kind = Fact::Kind::ended,
                    .ordinal = token.execution,
                    .step_kind = step.kind,
                    .attempt = token.attempt,
                    .status = status,
                    .entered = token.entered,
                    .step = step.id,
                    .text = reason,
                    .undo = std::exchange(undo_, {})});
}

void Walk::remove(uint32_t execution) {
  std::erase_if(instance_.tokens, [&](const Token& t) { return t.execution == execution; });
}

// Scopes that no token stands in any more: a branch left them by another way.
void Walk::forget_scopes() {
  std::vector<uint32_t> used;
  for (const Token& t : instance_.tokens)
    for (Scope* s = instance_.scope(t.scope); s; s = instance_.scope(s->parent))
      used.push_back(s->id);
  std::erase_if(instance_.scopes, [&](const Scope& s) {
    return std::find(used.begin(), used.end(), s.id) == used.end();
  });
}

Note Walk::finish(uint8_t status_before) {
  settle_variables();
  if (!instance_.scopes.empty()) forget_scopes();
  if (!is_final(instance_.status)) {
    bool waits = std::any_of(instance_.tokens.begin(), instance_.tokens.end(), [&](const Token& t) {
      return t.state == TokenState::running && type_of(definition_.steps[t.step].kind).waits;
    });
    instance_.status = waits ? Status::waiting : Status::active;
  }
  instance_.updated = now_;
  return {.tenant = tenant_,
          .instance_id = instance_.id,
          .definition_id = instance_.definition_id,
          .version = instance_.version,
          .business_key = instance_.business_key,
          .started = instance_.started,
          .before = status_before,
          .after = instance_.status,
          .facts = std::move(facts_)};
}

}  // namespace pawl::processes

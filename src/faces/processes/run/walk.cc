#include "faces/processes/run/walk.h"

#include <unordered_set>

#include "faces/processes/definition/steps.h"
#include "faces/processes/limits.h"
#include "faces/processes/state/job.h"
#include "json/merge.h"

namespace pawl::processes {

namespace {
// Work of looking at one gateway around a token. A token may stand in thousands of nested gateways.
constexpr size_t kScopeWork = 32;
}  // namespace

Walk::Walk(EffectSink& effects, Time now, std::string tenant, Instance& instance,
           const Definition& definition, WalkBudget& budget)
    : effects_(effects),
      now_(now),
      tenant_(std::move(tenant)),
      instance_(instance),
      definition_(definition),
      budget_(budget) {}

void Walk::begin(uint32_t step, std::string refused) {
  refused_ = std::move(refused);
  pending_.push_back({step, 0, 0});
  run();
}

void Walk::run() {
  while (!pending_.empty() && !is_final(instance_.status)) {
    PendingToken pending = pending_.back();
    pending_.pop_back();
    if (instance_.paused) {
      instance_.tokens.push_back({.step = pending.step,
                                  .state = TokenState::held,
                                  .scope = pending.scope,
                                  .branch = pending.branch});
      continue;
    }
    enter(pending);
  }
  // After a failure the pending tokens wait before their steps, so that a retry continues with
  // them.
  if (instance_.status == Status::failed)
    for (auto it = pending_.rbegin(); it != pending_.rend(); ++it)
      instance_.tokens.push_back(
          {.step = it->step, .state = TokenState::held, .scope = it->scope, .branch = it->branch});
  pending_.clear();
}

Result<void> Walk::check_work() const {
  if (budget_.work <= kWorkPerTurn) return {};
  return pawl::fail(Code::exhausted, "WorkLimitReached",
                    "WorkLimitReached: the expressions of one request may make " +
                        std::to_string(kWorkPerTurn) + " bytes; put a wait between the steps");
}

void Walk::enter(const PendingToken& pending) {
  const Step& step = definition_.steps[pending.step];
  if (step.kind == Kind::join_gateway && arrive_at_join(pending)) return;
  Token token{.step = pending.step,
              .execution = ++instance_.ordinals,
              .attempt = instance_.enter_count(pending.step),
              .entered = now_,
              .scope = pending.scope,
              .branch = pending.branch};
  record_entered(token);
  auto give_up = [&](const std::string& reason) {
    instance_.tokens.push_back(token);
    fail(token.execution, reason);
  };
  if (!refused_.empty()) return give_up(refused_);
  if (++budget_.steps > kStepsPerTurn)
    return give_up("StepLimitReached: more than " + std::to_string(kStepsPerTurn) +
                   " steps ran without waiting for anybody; is there a loop with no WAIT, "
                   "USER_TASK or SERVICE_TASK in it?");
  if (instance_.ordinals + 8 >= kMaxOrdinals)
    return give_up("ExecutionLimitReached: an instance may run " + std::to_string(kMaxOrdinals) +
                   " steps; chain another workflow instead of looping on");
  if (instance_.tokens.size() + pending_.size() >= kMaxTokens)
    return give_up("TokenLimitReached: an instance may stand at " + std::to_string(kMaxTokens) +
                   " steps at once");
  if (auto left = check_work(); !left) return give_up(left.error().message);
  Result<Next> next = type_of(step.kind).enter(*this, token, step);
  if (!next) return give_up(next.error().message);
  switch (next->what) {
    case Next::What::park: instance_.tokens.push_back(std::move(token)); return;
    case Next::What::go:
      record_ended(token, Execution::completed);
      pending_.push_back({next->step, pending.scope, pending.branch});
      return;
    case Next::What::fork: record_ended(token, Execution::completed); return fork(pending, step);
    case Next::What::join:  // of no gateway: there is nothing to wait for
      record_ended(token, Execution::completed);
      pending_.push_back({step.next, pending.scope, pending.branch});
      return;
    case Next::What::finish:
      record_ended(token, Execution::completed);
      return end_instance(pending.step);
  }
}

void Walk::fork(const PendingToken& pending, const Step& step) {
  Scope scope{.id = ++instance_.scope_ids,
              .gateway = pending.step,
              .parent = pending.scope,
              .parent_branch = pending.branch};
  scope.arrived.assign(step.parallel.size(), false);
  uint32_t id = scope.id;
  instance_.scopes.push_back(std::move(scope));
  for (size_t i = step.parallel.size(); i > 0; --i)
    pending_.push_back({step.parallel[i - 1], id, static_cast<uint32_t>(i - 1)});
}

// Looks for the gateway of this join among the gateways around the token, from the inside out.
Walk::JoinScope Walk::join_scope_of(const PendingToken& pending) {
  uint32_t branch = pending.branch, id = pending.scope;
  Scope* scope = instance_.scope(id);
  while (scope && definition_.steps[scope->gateway].join != pending.step) {
    budget_.work += kScopeWork;
    if (branch != kNoBranch) branch = scope->parent_branch;
    id = scope->parent;
    scope = instance_.scope(id);
  }
  return {scope, branch, !scope && id != 0};
}

// Returns false when the join belongs to no gateway around the token: it is entered like any step.
bool Walk::arrive_at_join(const PendingToken& pending) {
  const std::string& step_id = definition_.steps[pending.step].id;
  JoinScope at = join_scope_of(pending);
  if (at.already_done) {
    // Another token of the branch was faster, for example that of a boundary timer.
    record_event("reached a join that had fired", step_id);
    return true;
  }
  if (!at.scope) return false;
  ++budget_.steps;
  if (at.branch == kNoBranch) {
    record_event("reached a join beside its branch, which is waited for", step_id);
    return true;
  }
  std::vector<bool>& arrived = at.scope->arrived;
  if (at.branch < arrived.size()) arrived[at.branch] = true;
  auto waiting = record_arrival(pending.step, *at.scope, at.branch);
  if (std::find(arrived.begin(), arrived.end(), false) == arrived.end())
    fire_join(waiting, *at.scope);
  return true;
}

// Every arrival is an execution. The first one stays open until the join fires; its token is
// returned.
std::vector<Token>::iterator Walk::record_arrival(uint32_t join, const Scope& scope,
                                                  uint32_t branch) {
  std::vector<Token>& tokens = instance_.tokens;
  auto waiting = std::find_if(tokens.begin(), tokens.end(), [&](const Token& t) {
    return t.step == join && t.scope == scope.id;
  });
  Token token{.step = join,
              .execution = ++instance_.ordinals,
              .attempt = instance_.enter_count(join),
              .entered = now_,
              .scope = scope.id,
              .branch = branch};
  record_entered(token);
  if (waiting == tokens.end()) return tokens.insert(waiting, std::move(token));
  record_ended(token, Execution::completed);
  return waiting;
}

// All branches have arrived: one token goes on outside the gateway.
void Walk::fire_join(std::vector<Token>::iterator waiting, const Scope& scope) {
  const uint32_t join = waiting->step;
  record_ended(*waiting, Execution::completed);
  instance_.tokens.erase(waiting);
  PendingToken out{definition_.steps[join].next, scope.parent, scope.parent_branch};
  std::erase_if(instance_.scopes, [id = scope.id](const Scope& s) { return s.id == id; });
  // A gateway around this one may have the same join: then its branch has arrived there.
  for (const Scope* around = instance_.scope(out.scope); around;
       around = instance_.scope(around->parent)) {
    budget_.work += kScopeWork;
    if (definition_.steps[around->gateway].join == join) out.step = join;
  }
  pending_.push_back(out);
}

void Walk::complete(uint32_t execution) {
  Token* token = this->token(execution);
  if (!token) return;
  if (instance_.compensating) return compensation_done(Execution::completed);
  const Step& step = definition_.steps[token->step];
  uint32_t next = step.next;
  if (auto done = remember_done(*token, step); !done) return fail(execution, done.error().message);
  if (!step.branches.empty()) {
    Result<uint32_t> target = branch_of(*this, step);
    if (!target) return fail(execution, target.error().message);
    next = *target;
  }
  drop_effects(*token);
  if (token->state == TokenState::running) record_ended(*token, Execution::completed);
  if (next == kNoStep && step.kind == Kind::service_task) {
    token->state = TokenState::stuck;
    return;
  }
  PendingToken pending{next, token->scope, token->branch};
  remove(execution);
  if (pending.step == kNoStep) return;
  pending_.push_back(pending);
  run();
}

void Walk::move(Token& token, uint32_t target, const std::string& reason) {
  drop_effects(token);
  uint32_t scope = token.scope, branch = token.branch;
  if (token.state == TokenState::running) {
    record_ended(token, Execution::skipped, reason);
    // A token that is taken away from a join ends the wait: it goes on outside the gateway.
    if (const Scope* joined = instance_.scope(scope);
        joined && definition_.steps[token.step].kind == Kind::join_gateway) {
      scope = joined->parent;
      branch = joined->parent_branch;
      std::erase_if(instance_.scopes, [&](const Scope& s) { return s.id == token.scope; });
    }
  }
  token = {.step = target, .state = TokenState::held, .scope = scope, .branch = branch};
  if (!is_final(instance_.status)) reactivate();
}

void Walk::fire(uint32_t execution, uint32_t index) {
  Token* token = this->token(execution);
  if (!token || !armed(*token, index)) return;
  const Timer& timer = definition_.steps[token->step].timers[index];
  PendingToken pending{timer.target, token->scope,
                       timer.interrupting || !token->scope ? token->branch : kNoBranch};
  std::erase_if(token->timers, [&](const Token::ArmedTimer& a) { return a.index == index; });
  record_event(timer.interrupting ? "timer interrupted" : "timer fired",
               definition_.steps[token->step].id);
  if (timer.interrupting) {
    drop_effects(*token);
    record_ended(*token, Execution::failed, "interrupted by boundary timer");
    remove(execution);
  }
  pending_.push_back(pending);
  run();
}

void Walk::fail_job(uint32_t execution, const std::string& reason, bool retryable,
                    NextAttempt next) {
  Token* token = this->token(execution);
  if (!token) return;
  const Step& step = step_of(*token);
  bool fenced = next == NextAttempt::new_job;
  if (!retryable || token->tries >= step.retries ||
      (fenced && instance_.ordinals + 8 >= kMaxOrdinals))
    return fail(execution, reason);
  // The job keeps its first variables, even when other branches have changed them since.
  std::string effect_id = job_effect_id(id_of(token->job), token->tries);
  auto failed = decode_job(effects_.body_of(effect_id));
  withdraw_job(*token);
  ++token->tries;
  if (fenced) token->job = ++instance_.ordinals;
  Time wait = 0;
  if (step.backoff) {
    // Integer arithmetic gives the same delay on every machine.
    Time max = step.backoff->max ? add(now_, *step.backoff->max) - now_ : INT64_MAX / 2;
    wait = std::min(add(now_, step.backoff->initial) - now_, max);
    for (uint32_t i = 1; i < token->tries && wait < max && wait < INT64_MAX / 2'000'000; ++i)
      wait = std::min(wait / 1000 * step.backoff->multiplier_thousandths, max);
  }
  if (!instance_.suspended)
    offer(*token, step, now_ + wait, failed ? failed->variables : instance_.variables->text);
  record_event("job failed, offered again: " + reason, step.id);
}

void Walk::fail(uint32_t execution, const std::string& reason) {
  Token* token = this->token(execution);
  if (!token) return;
  drop_effects(*token);
  record_ended(*token, Execution::failed, reason);
  token->state = TokenState::failed;
  instance_.status = Status::failed;
  instance_.failure = (instance_.compensating ? "CompensationFailed: " : "") + reason;
  instance_.completed = now_;
  suspend();
  run();
}

void Walk::cancel(const std::string& reason) {
  suspend();
  for (Token& t : instance_.tokens) {
    drop_call(t);
    if (t.state == TokenState::running) record_ended(t, Execution::skipped, "cancelled");
  }
  instance_.tokens.clear();
  instance_.scopes.clear();
  instance_.kept_signals.clear();
  instance_.done_steps.clear();
  instance_.compensating = false;
  instance_.paused = instance_.suspended = false;
  instance_.status = Status::cancelled;
  instance_.failure = reason;
  instance_.completed = now_;
}

void Walk::end_instance(uint32_t step) {
  end_step_ = step;
  for (Token& t : instance_.tokens) {
    drop_effects(t);
    if (t.state == TokenState::running)
      record_ended(t, Execution::skipped, "the instance reached its end");
  }
  instance_.tokens.clear();
  instance_.scopes.clear();
  instance_.kept_signals.clear();
  instance_.done_steps.clear();
  pending_.clear();
  instance_.status = Status::completed;
  instance_.completed = now_;
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

void Walk::record_event(std::string event, std::string step) {
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

Token::ArmedTimer* Walk::armed(Token& token, uint32_t index) {
  for (Token::ArmedTimer& a : token.timers)
    if (a.index == index) return &a;
  return nullptr;
}

void Walk::record_entered(const Token& token) {
  const Step& step = step_of(token);
  facts_.push_back({.kind = Fact::Kind::entered,
                    .ordinal = token.execution,
                    .step_kind = step.kind,
                    .attempt = token.attempt,
                    .step = step.id,
                    .text = step.kind == Kind::user_task ? step.job_type : std::string()});
}

void Walk::record_ended(const Token& token, Execution status, const std::string& reason) {
  const Step& step = step_of(token);
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

// Drops gateways without tokens: their branches have left without reaching the join.
void Walk::drop_empty_scopes() {
  std::unordered_set<uint32_t> used;
  for (const Token& t : instance_.tokens) {
    // The gateways around a used one are used already.
    Scope* s = instance_.scope(t.scope);
    while (s && used.insert(s->id).second)
      s = instance_.scope(s->parent);
  }
  std::erase_if(instance_.scopes, [&](const Scope& s) { return !used.contains(s.id); });
}

Note Walk::finish(uint8_t status_before) {
  const bool failed_now =
      instance_.status == Status::failed && !is_final(static_cast<Status>(status_before));
  if (failed_now && definition_.compensates_failures && !instance_.compensating &&
      !instance_.done_steps.empty())
    compensate(std::string(instance_.failure));
  settle_variables();
  if (!instance_.scopes.empty()) drop_empty_scopes();
  if (!is_final(instance_.status)) {
    bool waits = std::any_of(instance_.tokens.begin(), instance_.tokens.end(), [&](const Token& t) {
      return t.state == TokenState::running && type_of(step_of(t).kind).waits;
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

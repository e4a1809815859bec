#include <fmt/format.h>

#include "faces/entities/flow/machine.h"
#include "json/text.h"

// Calls to compute members: the requests of the machine, and what each execution mode does with
// the result.

namespace pawl::entities {

namespace {

std::string_view shown(const Processor& p) {
  return p.mode_text.empty() ? std::string_view("SYNC") : std::string_view(p.mode_text);
}

std::string result_data(bool success, const Processor& p) {
  return json::print(json::object({{"success", success}, {"mode", shown(p)}}));
}

void member(std::string& out, std::string_view name, std::string_view value) {
  out += ",\"";
  out += name;
  out += "\":";
  json::append_string(out, value);
}

}  // namespace

void Machine::add_warnings() {
  for (const std::string& warning : result_->warnings)
    transaction_.warnings.push_back(warning);
}

Result<Machine::Match> Machine::evaluate(const std::optional<condition::Condition>& criterion,
                                         std::string_view target, const std::string& what) {
  if (!criterion) return Match::yes;
  const condition::Function* function = criterion->function();
  if (!function) {
    const Entity& e = progress_.entity;
    criteria_work_ += criterion->work({e.data, e.state, e.created, e.transition});
    if (criteria_work_ > kMaxCriteriaWork)
      return fail(Code::unprocessable, "CRITERIA_TOO_EXPENSIVE",
                  fmt::format("the criteria of one request may read {} bytes of documents: use "
                              "fewer criteria or smaller documents",
                              kMaxCriteriaWork));
    return criterion->matches({e.data, e.state, e.created, e.transition}) ? Match::yes : Match::no;
  }
  const Transition* t = target == "WORKFLOW" ? nullptr : &transition();
  if (!progress_.asked) {
    progress_.asked = true;
    TRY_OK(begin_call(turn_.dice().uuid1(turn_.now())));
    ask_function(*function, Call::criterion, target, t);
    return Match::wait;
  }
  if (prepare_retry(function->retry_policy)) {
    ask_function(*function, Call::criterion, target, t);
    return Match::wait;
  }
  progress_.asked = false;
  add_warnings();
  if (!result_->ok())
    return fail(member_error(what, function->tags, function->timeout_ms, Call::criterion));
  return result_->matches ? Match::yes : Match::no;
}

Machine::Mismatch Machine::not_matched(std::string what,
                                       const std::optional<condition::Condition>& criterion) const {
  Mismatch out{std::move(what) + " criterion not matched", {}};
  if (!criterion->function() || result_->message.empty()) return out;
  out.text += ": " + result_->message;
  out.data = json::print(json::object({{"reason", result_->message}}));
  return out;
}

Error Machine::member_error(const std::string& what, std::string_view tags, int64_t timeout_ms,
                            Call::Kind kind, bool between) const {
  auto error = [&](Code code, std::string_view reason, const std::string& why, bool retryable) {
    return Error{code, std::string(reason), fmt::format("{}: {}", what, why), {}, retryable};
  };
  switch (result_->kind) {
    case CallResult::no_member:
      return error(
          Code::unavailable, "NO_COMPUTE_MEMBER_FOR_TAG",
          fmt::format(
              "no matching calculation member: tags \"{}\"; start one that declares all of them",
              tags),
          true);
    case CallResult::disconnected:
      if (!between)
        return error(Code::unavailable, "COMPUTE_MEMBER_DISCONNECTED", "member disconnected", true);
      return error(Code::invalid, "WORKFLOW_FAILED", "member disconnected", false);
    case CallResult::timed_out:
      if (kind == Call::schedule)
        return error(Code::unavailable, "DISPATCH_TIMEOUT",
                     fmt::format("timed out after {}ms", timeout_ms > 0 ? timeout_ms : 30'000),
                     true);
      return error(Code::invalid, "WORKFLOW_FAILED",
                   fmt::format("timed out after {}ms", timeout_ms > 0 ? timeout_ms : 30'000),
                   false);
    case CallResult::dropped:
      return error(Code::invalid, "WORKFLOW_FAILED",
                   "the server was restarted before the member answered", false);
    default: return error(Code::invalid, "WORKFLOW_FAILED", result_->message, false);
  }
}

// The request as the contract defines it.
std::string Machine::request_text(const RequestFields& fields, const std::string& request,
                                  std::string_view tx) const {
  std::string out = "{\"id\":";
  json::append_string(out, request);
  member(out, "requestId", request);
  member(out, "entityId", progress_.entity.id);
  member(out, fmt::format("{}Id", fields.kind), fields.name);
  member(out, fmt::format("{}Name", fields.kind), fields.name);
  if (!fields.target.empty()) member(out, "target", fields.target);
  out += ",\"success\":true,\"workflow\":{\"id\":";
  json::append_string(out, flow().name);
  member(out, "name", flow().name);
  out += '}';
  // The criterion of a workflow belongs to no transition; its members are empty, as in the
  // original.
  const Transition* t = fields.transition;
  out += ",\"transition\":{\"id\":";
  json::append_string(out, t ? std::string_view(t->name) : "");
  member(out, "name", t ? std::string_view(t->name) : "");
  member(out, "stateFrom", t ? std::string_view(progress_.entity.state) : "");
  member(out, "stateTo", t ? std::string_view(t->next) : "");
  out += '}';
  member(out, "transactionId", tx);
  if (!fields.context.empty()) member(out, "parameters", fields.context);
  if (fields.attach) {
    const Entity& e = progress_.entity;
    EntityView view = view_of(e);
    view.tx = transaction_.tx;
    view.transition = {};
    if (!e.updated) view.updated = turn_.now();
    out += ",\"payload\":{\"type\":\"JSON\",\"data\":";
    out += e.data;
    out += ",\"meta\":";
    append_meta(out, view, true);
    out += '}';
  }
  return out += '}';
}

void Machine::ask(Call call, const std::string& request) {
  call.opened_at = turn_.now();
  call.user = transaction_.user;
  call.roles = transaction_.roles;
  call.token = turn_.dice().uuid4();
  call.turn = turn_.token();
  call.tx = transaction_.tx;
  Effect effect;
  effect.id = request;
  effect.to = To::member;
  effect.program = kProgram;
  effect.tenant = transaction_.tenant;
  effect.queue = call.tags;
  effect.body = encode(call);
  turn_.ask(std::move(effect));
}

void Machine::ask_function(const condition::Function& f, Call::Kind kind, std::string_view target,
                           const Transition* transition) {
  Call call;
  call.kind = kind;
  call.attempt = transaction_.attempt;
  call.name = f.name;
  call.tags = f.tags;
  call.timeout_ms = f.timeout_ms;
  call.retry_policy = f.retry_policy;
  std::string_view word = kind == Call::criterion ? "criteria" : "function";
  call.payload = request_text({word, f.name, target, transition, f.context, f.attach_entity},
                              transaction_.request, transaction_.tx);
  ask(std::move(call), transaction_.request);
}

Call Machine::call_for(const Processor& processor, const std::string& request,
                       std::string_view tx) const {
  Call call;
  call.name = processor.name;
  call.tags = processor.tags;
  call.timeout_ms = processor.timeout_ms;
  call.retry_policy = processor.retry_policy;
  call.durable = processor.durable;
  call.payload = request_text(
      {"processor", processor.name, {}, &transition(), processor.context, processor.attach_entity},
      request, tx);
  return call;
}

// Callbacks that join the transaction see the entity as it is now. Before a workflow is selected
// there is no entity to see.
Result<void> Machine::begin_call(const std::string& request) {
  if (progress_.stage != Stage::select) {
    Entity seen = progress_.entity;
    seen.tx = transaction_.tx;
    seen.updated = turn_.now();
    TRY_OK(put_entity(turn_, transaction_.tenant, seen,
                      std::exchange(progress_.stored_before, StoredBefore::unknown)));
    if (!transaction_.model->unique_keys.empty()) {
      TRY_OK(claim_free(turn_, transaction_.tenant, *transaction_.model, seen.id, seen.data,
                        progress_.old_data));
      progress_.old_data = seen.data;
      progress_.claimed = ClaimedValues::free_only;
    }
  }
  transaction_.savepoint = turn_.mark();
  transaction_.request = request;
  transaction_.attempt = 1;
  transaction_.redelivered = false;
  return {};
}

Result<void> Machine::ask_processor(const Processor& processor, const std::string& request,
                                    bool redelivered) {
  TRY_OK(begin_call(request));
  transaction_.redelivered = redelivered;
  ask_attempt(processor);
  return {};
}

void Machine::ask_attempt(const Processor& processor) {
  Call call = call_for(processor, transaction_.request, transaction_.tx);
  call.redelivered = transaction_.redelivered;
  call.attempt = transaction_.attempt;
  ask(std::move(call), transaction_.request);
}

// Undoes what callbacks of the failed attempt wrote.
bool Machine::prepare_retry(std::string_view retry_policy) {
  if (result_->ok() || result_->kind >= CallResult::dropped ||
      !retry_delay(retry_policy, transaction_.attempt))
    return false;
  add_warnings();
  turn_.rewind(transaction_.savepoint);
  ++transaction_.attempt;
  return true;
}

Result<void> Machine::dispatch(const Processor& processor) {
  if (commits_before(processor)) return commit_and_dispatch(processor);
  // Only the request that began a transaction may commit it, so a joined request cannot commit
  // before the call.
  if (processor.mode == Mode::commit_before_dispatch)
    return fail(
        Code::conflict, "COMMIT_IN_JOINED_TRANSACTION",
        fmt::format(
            "workflow \"{}\" reaches processor \"{}\", which commits before it is called, inside a "
            "transaction that this request joined; send the request without the token",
            flow().name, processor.name));
  return ask_processor(processor, turn_.dice().uuid1(turn_.now()), false);
}

// Ends the first transaction: the entity is saved in the source state with the new data. The call
// leaves once that is durable.
Result<void> Machine::commit_and_dispatch(const Processor& processor) {
  rearm_timers(turn_, transaction_.tenant, progress_.flow, progress_.timings, progress_.entity,
               progress_.events);
  TRY_OK(save());
  stamp_commit_time();
  std::string request = turn_.dice().uuid1(turn_.now());
  Call call = call_for(processor, request, {});
  call.opened_at = turn_.now();
  call.user = transaction_.user;
  call.roles = transaction_.roles;
  call.starts_transaction = processor.start_new_tx;
  Effect effect;
  effect.id = request;
  effect.to = To::member;
  effect.program = kProgram;
  effect.tenant = transaction_.tenant;
  effect.queue = processor.tags;
  effect.body = encode(call);
  turn_.open(std::move(effect));
  turn_.write(pending_key(transaction_.tenant, request), encode(transaction_));
  turn_.answer_later(request);
  return {};
}

Result<Bytes> Machine::run_second_transaction(const CallResult& result,
                                              const std::string& request) {
  result_ = &result;
  transaction_.settles = true;
  transaction_.start = turn_.mark();
  std::string first = std::exchange(transaction_.tx, turn_.dice().uuid1(turn_.now()));
  TRY_OK(load_workflows());
  TRY(transaction_.model,
      find_model(turn_, transaction_.tenant, progress_.entity.model, progress_.entity.version));
  TRY(StoredEntity stored, find_entity(turn_, transaction_.tenant, progress_.entity.id));
  if (!progress_.flow || !transaction_.model ||
      progress_.transition >= flow().transitions(progress_.entity.state).size() ||
      progress_.processor >= transition().processors.size())
    return abort_turn(
        {Code::invalid,
         "WORKFLOW_FAILED",
         fmt::format("workflow \"{}\" was changed while a member was working for entity {}",
                     progress_.workflow, progress_.entity.id),
         {},
         false});
  const Processor& processor = transition().processors[progress_.processor];
  if (result.ok() || result.kind == CallResult::lost)
    if (result.kind == CallResult::lost || !stored.exists() || stored.view.tx != first)
      return abort_turn(
          {Code::conflict,
           "CONFLICT",
           fmt::format("processor {}: conflict: entity {} has been modified between the "
                       "transactions; read it and retry",
                       processor.name, progress_.entity.id),
           {},
           true});
  if (!processor.start_new_tx || !result.ok()) return drive();
  // The call keeps the id of the dispatch, so that a member recognises a repeated call.
  TRY_OK(ask_processor(processor, request, result.redelivered));
  return Bytes();
}

Result<void> Machine::reload_entity() {
  if (progress_.stored_before == StoredBefore::no) return {};
  TRY(StoredEntity found, find_entity(turn_, transaction_.tenant, progress_.entity.id));
  if (!found.exists()) {
    if (progress_.stage == Stage::process) {
      const Processor& processor = transition().processors[progress_.processor];
      record(EventKind::process_result, fmt::format("processor \"{}\" finished", processor.name),
             result_data(true, processor));
    }
    progress_.stage = Stage::deleted;
    return {};
  }
  if (found.cell.version == Turn::kOwnWrite) {
    if (found.view.data != progress_.entity.data) progress_.entity.data = found.view.data;
    // The timers that a callback armed with its save are withdrawn together with our own.
    progress_.entity.timers.assign(found.view.timers.begin(), found.view.timers.end());
  }
  if (!transaction_.model->unique_keys.empty()) progress_.old_data = found.view.data;
  return {};
}

Result<void> Machine::take_data(const Processor& processor, const std::string& data) {
  if (!processor.validate_result && !options_.validate_results) {
    progress_.entity.data = data;
    return {};
  }
  TRY(json::Value value, json::parse(data, {.max_bytes = limits::kCellBytes}));
  auto taken = set_data(value, data);
  if (taken) return {};
  record(EventKind::process_result, fmt::format("processor \"{}\" failed", processor.name),
         result_data(false, processor));
  return fail(Code::invalid, "WORKFLOW_FAILED",
              fmt::format("processor {} failed: its result does not fit model {} version {}: {}",
                          processor.name, transaction_.model->name, transaction_.model->version,
                          taken.error().message));
}

Result<void> Machine::apply_result(const Processor& processor) {
  const CallResult& v = *result_;
  add_warnings();
  if (processor.mode == Mode::async_new_tx) {
    if (!v.ok()) turn_.rewind(transaction_.savepoint);
    record(EventKind::process_result,
           fmt::format("processor \"{}\" {}", processor.name,
                       v.ok() ? "finished" : "failed; its writes are undone"),
           result_data(v.ok(), processor));
    return {};
  }
  if (!v.ok()) {
    record(EventKind::process_result, fmt::format("processor \"{}\" failed", processor.name),
           result_data(false, processor));
    std::string what = fmt::format("processor {} failed", processor.name);
    if (v.kind == CallResult::failed) what += ": processor dispatch failed";
    return fail(member_error(what, processor.tags, processor.timeout_ms, Call::processor,
                             processor.mode == Mode::commit_before_dispatch));
  }
  // Data that the processor returns replaces what its callbacks wrote to the entity.
  if (!v.data.empty()) TRY_OK(take_data(processor, v.data));
  record(EventKind::process_result, fmt::format("processor \"{}\" finished", processor.name),
         result_data(true, processor));
  return {};
}

}  // namespace pawl::entities

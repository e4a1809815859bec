#include <fmt/format.h>

#include "faces/entities/flow/machine.h"
#include "json/text.h"

// Calls to compute members: how the machine asks them, and what each execution mode makes of the
// verdict.

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

Result<Machine::Ruling> Machine::judge(const std::optional<condition::Condition>& criterion,
                                       std::string_view target, const std::string& what) {
  if (!criterion) return Ruling::yes;
  const condition::Function* function = criterion->function();
  if (!function) {
    const Entity& e = p_.entity;
    return criterion->matches({e.data, e.state, e.created, e.transition}) ? Ruling::yes
                                                                          : Ruling::no;
  }
  const Transition* t = target == "WORKFLOW" ? nullptr : &transition();
  if (!p_.asked) {
    p_.asked = true;
    TRY_OK(begin_call(turn_.dice().uuid1(turn_.now())));
    ask_function(*function, Call::criterion, target, t);
    return Ruling::wait;
  }
  if (try_again(function->retry_policy)) {
    ask_function(*function, Call::criterion, target, t);
    return Ruling::wait;
  }
  p_.asked = false;
  for (const std::string& w : verdict_->warnings)
    job_.warnings.push_back(w);
  if (!verdict_->ok())
    return fail(member_error(what, function->tags, function->timeout_ms, Call::criterion));
  return verdict_->matches ? Ruling::yes : Ruling::no;
}

Machine::Refusal Machine::not_matched(std::string what,
                                      const std::optional<condition::Condition>& criterion) const {
  Refusal out{std::move(what) + " criterion not matched", {}};
  if (!criterion->function() || verdict_->message.empty()) return out;
  out.text += ": " + verdict_->message;
  out.data = json::print(json::object({{"reason", verdict_->message}}));
  return out;
}

Error Machine::member_error(const std::string& what, std::string_view tags, int64_t timeout_ms,
                            Call::Kind kind, bool outside) const {
  auto error = [&](Code code, std::string_view reason, const std::string& why, bool retryable) {
    return Error{code, std::string(reason), fmt::format("{}: {}", what, why), {}, retryable};
  };
  switch (verdict_->kind) {
    case Verdict::no_member:
      return error(
          Code::unavailable, "NO_COMPUTE_MEMBER_FOR_TAG",
          fmt::format(
              "no matching calculation member: tags \"{}\"; start one that declares all of them",
              tags),
          true);
    case Verdict::disconnected:
      if (!outside)
        return error(Code::unavailable, "COMPUTE_MEMBER_DISCONNECTED", "member disconnected", true);
      return error(Code::invalid, "WORKFLOW_FAILED", "member disconnected", false);
    case Verdict::timed_out:
      if (kind == Call::schedule)
        return error(Code::unavailable, "DISPATCH_TIMEOUT",
                     fmt::format("timed out after {}ms", timeout_ms > 0 ? timeout_ms : 30'000),
                     true);
      return error(Code::invalid, "WORKFLOW_FAILED",
                   fmt::format("timed out after {}ms", timeout_ms > 0 ? timeout_ms : 30'000),
                   false);
    case Verdict::dropped:
      return error(Code::invalid, "WORKFLOW_FAILED",
                   "the server was restarted before the member answered", false);
    default: return error(Code::invalid, "WORKFLOW_FAILED", verdict_->message, false);
  }
}

// The request that the member sees, as the contract words it.
std::string Machine::request_text(const Question& q, const std::string& request,
                                  std::string_view tx) const {
  std::string out = "{\"id\":";
  json::append_string(out, request);
  member(out, "requestId", request);
  member(out, "entityId", p_.entity.id);
  member(out, fmt::format("{}Id", q.kind), q.name);
  member(out, fmt::format("{}Name", q.kind), q.name);
  if (!q.target.empty()) member(out, "target", q.target);
  out += ",\"success\":true,\"workflow\":{\"id\":";
  json::append_string(out, flow().name);
  member(out, "name", flow().name);
  out += '}';
  if (q.transition) {
    out += ",\"transition\":{\"id\":";
    json::append_string(out, q.transition->name);
    member(out, "name", q.transition->name);
    member(out, "stateFrom", p_.entity.state);
    member(out, "stateTo", q.transition->next);
    out += '}';
  }
  member(out, "transactionId", tx);
  if (!q.context.empty()) member(out, "parameters", q.context);
  if (q.attach) {
    const Entity& e = p_.entity;
    EntityView view{e.id,      e.model,   e.state,
                    job_.tx,   {},        e.data,
                    e.version, e.created, e.updated ? e.updated : turn_.now(),
                    {}};
    out += ",\"payload\":{\"type\":\"JSON\",\"data\":";
    out += e.data;
    out += ",\"meta\":";
    append_meta(out, view, true);
    out += '}';
  }
  return out += '}';
}

void Machine::ask(Call call, const std::string& request) {
  call.opened = turn_.now();
  call.user = job_.user;
  call.roles = job_.roles;
  call.token = turn_.dice().uuid4();
  call.turn = turn_.token();
  call.tx = job_.tx;
  Effect effect;
  effect.id = request;
  effect.to = To::member;
  effect.program = kProgram;
  effect.tenant = job_.tenant;
  effect.queue = call.tags;
  effect.body = encode(call);
  turn_.ask(std::move(effect));
}

void Machine::ask_function(const condition::Function& f, Call::Kind kind, std::string_view target,
                           const Transition* transition) {
  Call call;
  call.kind = kind;
  call.attempt = job_.attempt;
  call.name = f.name;
  call.tags = f.tags;
  call.timeout_ms = f.timeout_ms;
  call.retry_policy = f.retry_policy;
  std::string_view word = kind == Call::criterion ? "criteria" : "function";
  call.payload = request_text({word, f.name, target, transition, f.context, f.attach_entity},
                              job_.request, job_.tx);
  ask(std::move(call), job_.request);
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

// Callbacks that join see the entity as this transaction has it; before it has a workflow there is
// none.
Result<void> Machine::begin_call(const std::string& request) {
  if (p_.stage != Stage::select) {
    Entity seen = p_.entity;
    seen.tx = job_.tx;
    seen.updated = turn_.now();
    TRY_OK(put_entity(turn_, job_.tenant, seen, std::exchange(p_.was, Was::unknown)));
    if (!job_.model->unique_keys.empty()) {
      TRY_OK(claim_free(turn_, job_.tenant, *job_.model, seen.id, seen.data, p_.old_data));
      p_.old_data = seen.data;
      p_.held = Held::free;
    }
  }
  job_.savepoint = turn_.mark();
  job_.request = request;
  job_.attempt = 1;
  job_.again = false;
  return {};
}

Result<void> Machine::ask_processor(const Processor& processor, const std::string& request,
                                    bool again) {
  TRY_OK(begin_call(request));
  job_.again = again;
  ask_attempt(processor);
  return {};
}

void Machine::ask_attempt(const Processor& processor) {
  Call call = call_for(processor, job_.request, job_.tx);
  call.again = job_.again;
  call.attempt = job_.attempt;
  ask(std::move(call), job_.request);
}

// An attempt that failed leaves nothing: what its callbacks wrote is undone before the next.
bool Machine::try_again(std::string_view retry_policy) {
  if (verdict_->ok() || verdict_->kind >= Verdict::dropped ||
      !rest_after(retry_policy, job_.attempt))
    return false;
  for (const std::string& w : verdict_->warnings)
    job_.warnings.push_back(w);
  turn_.rewind(job_.savepoint);
  ++job_.attempt;
  return true;
}

Result<void> Machine::dispatch(const Processor& processor) {
  if (commits_before(processor)) return commit_and_open(processor);
  // Only who began a transaction may end it; and the promise to stand before the call cannot be
  // kept inside another's.
  if (processor.mode == Mode::commit_before_dispatch)
    return fail(
        Code::conflict, "COMMIT_IN_JOINED_TRANSACTION",
        fmt::format(
            "workflow \"{}\" reaches processor \"{}\", which commits before it is called, inside a "
            "transaction that this request joined; send the request without the token",
            flow().name, processor.name));
  return ask_processor(processor, turn_.dice().uuid1(turn_.now()), false);
}

// Ends the first transaction: the entity stands in the source state with the new data, and the call
// leaves once that is durable.
Result<void> Machine::commit_and_open(const Processor& processor) {
  rearm(turn_, job_.tenant, p_.flow, p_.timings, p_.entity, p_.events);
  TRY_OK(save());
  stamp();
  std::string request = turn_.dice().uuid1(turn_.now());
  Call call = call_for(processor, request, {});
  call.opened = turn_.now();
  call.user = job_.user;
  call.roles = job_.roles;
  call.begins = processor.start_new_tx;
  Effect effect;
  effect.id = request;
  effect.to = To::member;
  effect.program = kProgram;
  effect.tenant = job_.tenant;
  effect.queue = processor.tags;
  effect.body = encode(call);
  turn_.open(std::move(effect));
  turn_.write(pending_key(job_.tenant, request), encode(job_));
  turn_.answer_later(request);
  return {};
}

Result<Bytes> Machine::second(const Verdict& verdict, const std::string& request) {
  verdict_ = &verdict;
  job_.settles = true;
  job_.start = turn_.mark();
  std::string first = std::exchange(job_.tx, turn_.dice().uuid1(turn_.now()));
  TRY_OK(load_workflow());
  TRY(job_.model, find_model(turn_, job_.tenant, p_.entity.model, p_.entity.version));
  TRY(Found stored, find_entity(turn_, job_.tenant, p_.entity.id));
  if (!p_.flow || !job_.model || p_.transition >= flow().transitions(p_.entity.state).size() ||
      p_.processor >= transition().processors.size())
    return give_up(
        {Code::invalid,
         "WORKFLOW_FAILED",
         fmt::format("workflow \"{}\" was changed while a member was working for entity {}",
                     p_.workflow, p_.entity.id),
         {},
         false});
  const Processor& processor = transition().processors[p_.processor];
  if (verdict.ok() || verdict.kind == Verdict::lost)
    if (verdict.kind == Verdict::lost || !stored.exists() || stored.view.tx != first)
      return give_up({Code::conflict,
                      "CONFLICT",
                      fmt::format("processor {}: conflict: entity {} has been modified between the "
                                  "transactions; read it and retry",
                                  processor.name, p_.entity.id),
                      {},
                      true});
  if (!processor.start_new_tx || !verdict.ok()) return drive();
  // Under the id of the dispatch, so that a member recognises a call that comes again.
  TRY_OK(ask_processor(processor, request, verdict.again));
  return Bytes();
}

Result<void> Machine::look_again() {
  if (p_.was == Was::nowhere) return {};
  TRY(Found found, find_entity(turn_, job_.tenant, p_.entity.id));
  if (!found.exists()) {
    if (p_.stage == Stage::process) {
      const Processor& processor = transition().processors[p_.processor];
      record(EventKind::process_result, fmt::format("processor \"{}\" finished", processor.name),
             result_data(true, processor));
    }
    p_.stage = Stage::gone;
    return {};
  }
  if (found.cell.version == Turn::kOwnWrite) {
    if (found.view.data != p_.entity.data) p_.entity.data = found.view.data;
    // Timers that a callback armed with its save are withdrawn with those of ours.
    p_.entity.timers.assign(found.view.timers.begin(), found.view.timers.end());
  }
  if (!job_.model->unique_keys.empty()) p_.old_data = found.view.data;
  return {};
}

Result<void> Machine::settle(const Processor& processor) {
  const Verdict& v = *verdict_;
  for (const std::string& w : v.warnings)
    job_.warnings.push_back(w);
  if (processor.mode == Mode::async_new_tx) {
    if (!v.ok()) turn_.rewind(job_.savepoint);
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
    if (v.kind == Verdict::failed) what += ": processor dispatch failed";
    return fail(member_error(what, processor.tags, processor.timeout_ms, Call::processor,
                             processor.mode == Mode::commit_before_dispatch));
  }
  // A callback may have written the entity itself; data that is returned beats it.
  if (!v.data.empty()) p_.entity.data = v.data;
  record(EventKind::process_result, fmt::format("processor \"{}\" finished", processor.name),
         result_data(true, processor));
  return {};
}

}  // namespace pawl::entities

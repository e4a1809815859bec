#include "faces/processes/run/program.h"

#include "faces/processes/definition/steps.h"
#include "faces/processes/limits.h"
#include "faces/processes/run/calls.h"
#include "faces/processes/run/slots.h"
#include "faces/processes/schedule/verbs.h"
#include "faces/processes/state/job.h"
#include "faces/processes/state/signal.h"
#include "json/merge.h"
#include "json/text.h"

namespace pawl::processes {

Result<std::shared_ptr<const DefinitionHead>> TurnContext::head(std::string_view definition_id) {
  TRY(auto head, turn.read_as<DefinitionHead>(head_key(tenant, definition_id), decode_head));
  if (!head || head->deleted)
    return fail(Code::not_found, "NO_DEFINITION",
                "definition \"" + std::string(definition_id) + "\" not found: upload it first");
  return head;
}

Result<std::shared_ptr<const Definition>> TurnContext::definition(std::string_view id,
                                                                  uint32_t version) {
  TRY(auto found, turn.read_as<Definition>(version_key(tenant, id, version), decode_version));
  if (!found)
    return fail(Code::not_found, "NO_DEFINITION",
                "version " + std::to_string(version) + " of definition \"" + std::string(id) +
                    "\" not found");
  return found;
}

Result<std::shared_ptr<const Instance>> TurnContext::instance(std::string_view id) {
  TRY(auto found, turn.read_as<Instance>(instance_key(tenant, id), decode_instance));
  if (!found)
    return fail(Code::not_found, kNoInstance, "instance \"" + std::string(id) + "\" not found");
  return found;
}

Bytes TurnContext::body_of(const std::string& effect_id) {
  auto effect = turn.read_as<Effect>(effect_key(effect_id), decode_effect);
  if (effect && *effect) return (*effect)->body;
  return Slots(turn, tenant).parked_body(effect_id).value_or(Bytes());
}

void TurnContext::open_limited(const LimitUse& use, Effect effect) {
  if (limits) limits = Slots(turn, tenant).request(use, std::move(effect));
}

void TurnContext::withdraw_limited(const LimitUse& use, const std::string& effect_id) {
  if (limits) limits = Slots(turn, tenant).release(use, effect_id);
}

// The command's values win over the definition's expressions. Their cost is added to `work`, which
// the walk checks before each step. An error fails the instance at its
// first step.
static Result<void> set_fairness(const StartCommand& c, const Definition& definition,
                                 Instance& instance, size_t& work) {
  const json::Object& variables = instance.variables->object;
  if (c.priority) {
    instance.priority = *c.priority;
  } else if (definition.priority) {
    TRY(json::Value value, definition.priority->evaluate(variables, instance.started, &work));
    auto number = value.is_number() ? value.as_int64() : std::nullopt;
    if (!number || *number < -kMaxPriority || *number > kMaxPriority)
      return fail(Code::invalid, "PriorityInvalid",
                  "PriorityInvalid: priority must be an integer from " +
                      std::to_string(-kMaxPriority) + " to " + std::to_string(kMaxPriority) +
                      ", got " + json::print(value).substr(0, 100));
    instance.priority = static_cast<int32_t>(*number);
  }
  if (c.fairness_key) {
    instance.fairness_key = *c.fairness_key;
  } else if (definition.fairness_key) {
    TRY(json::Value value, definition.fairness_key->evaluate(variables, instance.started, &work));
    auto text = key_text(value);
    if (!text || text->size() > kLimitKeyBytes)
      return fail(
          Code::invalid, "FairnessKeyInvalid",
          "FairnessKeyInvalid: fairnessKey must be text, a number or a boolean of at most " +
              std::to_string(kLimitKeyBytes) + " bytes");
    instance.fairness_key = std::move(*text);
  }
  return {};
}

Result<void> TurnContext::check_schema(const schema::Schema& schema, const json::Object& variables,
                                       const std::string& what) {
  size_t visits = 0;
  auto fits = schema.check(json::Value(variables), visits, kSchemaVisits);
  budget.work += visits * kWorkPerVisit;
  if (fits) return {};
  return fail(Code::invalid, fits.error().reason,
              "the variables do not match " + what + ": " + fits.error().message);
}

Result<InstancePtr> TurnContext::start(const StartCommand& c,
                                       std::shared_ptr<const Definition>* used,
                                       const Instance* ended) {
  TRY(auto head, this->head(c.definition_id));
  uint32_t version = c.version ? c.version : head->current();
  TRY(auto definition, this->definition(c.definition_id, version));
  // A chain waits for a retired definition as it waits for one that was not uploaded yet.
  if (head->retired)
    return fail(ended ? Code::not_found : Code::conflict, "DEFINITION_RETIRED",
                "definition \"" + c.definition_id + "\" is retired (" + head->retire_reason +
                    "): activate a version first");
  if (head->paused && c.previous_id.empty())
    return fail(Code::conflict, "DEFINITION_PAUSED",
                "definition \"" + c.definition_id + "\" is paused (" + head->pause_reason +
                    "): resume it first");
  uint32_t first = c.at_step.empty() ? 0 : definition->find(c.at_step);
  if (first == kNoStep)
    return fail(Code::not_found, "NO_STEP",
                "definition \"" + c.definition_id + "\" version " + std::to_string(version) +
                    " has no step \"" + c.at_step + "\"");
  TRY(InstancePtr holder, key_holder(*definition, c.business_key, c.previous_id));
  if (holder && c.previous_id.empty() && c.parent_id.empty() &&
      definition->key_policy->conflict == KeyPolicy::Conflict::return_existing) {
    existing = true;
    if (used) {
      TRY(*used, this->definition(holder->definition_id, holder->version));
    }
    return holder;
  }
  std::string refused = chain_refused();
  // An instance that starts within its workflow has variables that the workflow made.
  if (definition->input_schema && c.at_step.empty()) {
    auto fits = check_schema(*definition->input_schema, c.variables->object,
                             "the inputSchema of definition \"" + c.definition_id + "\"");
    if (!fits && !ended) return std::unexpected(std::move(fits.error()));
    // A chained start has no caller to refuse, so the instance fails with the reason.
    if (!fits) refused = "InputSchemaMismatch: " + fits.error().message;
  }
  Instance instance;
  instance.id = instance_id_from(turn.dice().ulid(turn.now()));
  instance.definition_id = c.definition_id;
  instance.version = version;
  instance.business_key = c.business_key;
  instance.previous_id = c.previous_id;
  instance.started = turn.now();
  instance.variables = c.variables;
  instance.parent_id = c.parent_id;
  instance.parent_execution = c.parent_execution;
  instance.call_depth = c.call_depth;
  // Only a chained instance is started while its definition is paused.
  instance.paused = head->paused;
  instance.suspended = head->paused;
  if (ended) {
    instance.priority = ended->priority;
    instance.fairness_key = ended->fairness_key;
  }
  if (auto set = set_fairness(c, *definition, instance, budget.work); !set && refused.empty())
    refused = set.error().message;
  Walk walk(*this, turn.now(), tenant, instance, *definition, budget);
  walk.begin(first, std::move(refused));
  if (used) *used = definition;
  return close(instance, walk, *definition, 0);
}

Result<InstancePtr> TurnContext::close(Instance& instance, Walk& walk, const Definition& definition,
                                       uint8_t status_before) {
  Note note = walk.finish(status_before);
  TRY_OK(limits);
  if (instance.variables->text.size() > kVariablesBytes)
    return fail(Code::too_large, "VARIABLES_TOO_LARGE",
                "the variables of an instance may have " + std::to_string(kVariablesBytes) +
                    " bytes as JSON: keep large content elsewhere and pass a reference");
  TRY_OK(update_key(instance, definition, status_before));
  TRY_OK(update_retention(instance, definition, status_before));
  const bool ran = !is_final(static_cast<Status>(status_before));
  if (ran && is_final(instance.status) && instance.parent_execution)
    turn.open(
        child_ended_effect(tenant, {instance.parent_id, instance.parent_execution, instance.id}));
  if (walk.reached_end() && definition.steps[walk.end_step()].chains.value_or(definition.chains))
    TRY_OK(chain(instance, definition, note));
  if (is_final(instance.status)) TRY_OK(end_run(*this, instance.id));
  return put(std::move(instance), std::move(note));
}

InstancePtr TurnContext::put(Instance instance, Note note) {
  note.cause = input.verb;
  note.user = input.caller.user;
  note.reason = reason;
  turn.note(encode(note));
  Bytes bytes = encode(instance);
  auto written = std::make_shared<const Instance>(std::move(instance));
  turn.write(instance_key(tenant, written->id), std::move(bytes), written);
  return written;
}

namespace {

Result<Bytes> start(TurnContext& context) {
  TRY(auto command, command<StartCommand>(context.input, decode_start));
  context.reason = command->reason;
  std::shared_ptr<const Definition> definition;
  TRY(InstancePtr instance, context.start(*command, &definition));
  std::string answer = instance_json(*instance, *definition);
  if (!context.existing) return answer;
  answer.pop_back();
  return answer.append(kExistingEnd);
}

void merge_deep_into(Walk& walk, const Variables& result) {
  if (!result.object.empty()) json::merge_deep(walk.edit(), result.object);
}

void merge_shallow_into(Walk& walk, const Variables& result) {
  if (!result.object.empty()) json::merge_shallow(walk.edit(), result.object);
}

// The running token whose job has this ordinal; null when the job is settled.
Result<const Token*> job_token(const Instance& instance, std::string_view job_id,
                               uint32_t ordinal) {
  if (ordinal == 0 || ordinal > instance.ordinals)
    return fail(Code::not_found, "NO_JOB", "job \"" + std::string(job_id) + "\" not found");
  for (const Token& t : instance.tokens) {
    if (t.job == ordinal && t.state == TokenState::running)
      return is_final(instance.status) ? nullptr : &t;
    if (t.execution == ordinal)
      return fail(Code::not_found, "NO_JOB",
                  "job \"" + std::string(job_id) + "\" not found: that is the id of an execution");
  }
  return nullptr;
}

Result<OrdinalId> parse_job_id(std::string_view job_id) {
  auto parsed = parse_ordinal_id(job_id);
  if (!parsed)
    return fail(Code::not_found, "NO_JOB", "job \"" + std::string(job_id) + "\" not found");
  return *parsed;
}

// A worker that names a job of an unknown instance gets "job not found".
template <class Act>
Result<void> walk_job(TurnContext& context, const std::string& job_id, Act&& act) {
  TRY(OrdinalId job, parse_job_id(job_id));
  auto done = walk_instance(
      context, job.instance_id,
      [&](Walk& walk, Instance& instance, const Definition& definition) -> Result<bool> {
        TRY(const Token* token, job_token(instance, job_id, job.ordinal));
        if (!token) return false;
        TRY_OK(act(walk, *token, step_of(instance, definition, token->step)));
        return true;
      });
  if (!done && done.error().is(kNoInstance))
    return fail(Code::not_found, "NO_JOB", "job \"" + job_id + "\" not found");
  return done;
}

Result<Bytes> complete(TurnContext& context) {
  TRY(auto command, command<ResultCommand>(context.input, decode_result));
  auto act = [&](Walk& walk, const Token& token, const Step& step) -> Result<void> {
    TRY_OK(check_outputs(context, step, *command->variables));
    uint32_t execution = token.execution;
    merge_deep_into(walk, *command->variables);
    walk.complete(execution);
    return {};
  };
  TRY_OK(walk_job(context, command->id, act));
  return Bytes();
}

Result<Bytes> fail_job(TurnContext& context) {
  TRY(auto command, command<FailCommand>(context.input, decode_fail));
  auto act = [&](Walk& walk, const Token& token, const Step&) -> Result<void> {
    walk.fail_job(token.execution, command->message, command->retryable,
                  command->fenced ? NextAttempt::new_job : NextAttempt::same_job);
    return {};
  };
  TRY_OK(walk_job(context, command->job_id, act));
  return Bytes();
}

// Begins the time of an attempt. A job that has ended meanwhile needs none.
Result<Bytes> attempt(TurnContext& context) {
  TRY(auto command, command<AttemptCommand>(context.input, decode_attempt));
  TRY(OrdinalId job, parse_job_id(command->job_id));
  TRY_OK(walk_instance(
      context, job.instance_id,
      [&](Walk& walk, Instance& instance, const Definition& definition) -> Result<bool> {
        TRY(const Token* token, job_token(instance, command->job_id, job.ordinal));
        if (!token || instance.suspended) return false;
        if (!step_of(instance, definition, token->step).attempt_timeout) return false;
        walk.begin_attempt(*walk.token(token->execution), command->worker);
        return true;
      }));
  return Bytes();
}

Result<void> expire_attempt(TurnContext& context, const AttemptId& id) {
  context.tenant = id.tenant;
  TRY(OrdinalId job, parse_job_id(id.job_id));
  return walk_instance(
      context, job.instance_id,
      [&](Walk& walk, Instance& instance, const Definition& definition) -> Result<bool> {
        TRY(const Token* token, job_token(instance, id.job_id, job.ordinal));
        if (!token || token->leases != id.lease) return false;
        const Step& step = step_of(instance, definition, token->step);
        walk.fail_job(token->execution,
                      "AttemptTimedOut: step \"" + step.id + "\" had no result within " +
                          step.attempt_timeout_text,
                      true);
        return true;
      });
}

std::unexpected<Error> finished(const Instance& instance) {
  return fail(
      Code::conflict, "INSTANCE_FINISHED",
      "instance \"" + instance.id + "\" is already " + std::string(status_name(instance.status)));
}

Result<void> keep_for_step(Walk& walk, const Instance& instance, uint32_t step,
                           const VariablesPtr& variables) {
  size_t bytes = variables->text.size();
  for (const Instance::KeptSignal& kept : instance.kept_signals)
    bytes += kept.variables->text.size();
  if (instance.kept_signals.size() >= kKeptSignalsOfInstance || bytes > kVariablesBytes)
    return fail(Code::exhausted, "SIGNALS_FULL",
                "instance \"" + instance.id + "\" keeps " +
                    std::to_string(instance.kept_signals.size()) + " signals; it may keep " +
                    std::to_string(kKeptSignalsOfInstance) + " with " +
                    std::to_string(kVariablesBytes) + " bytes: wait until it takes them");
  walk.keep_signal(step, variables);
  return {};
}

// Completes a parked USER_TASK or WAIT by instance and step.
Result<Bytes> settle(TurnContext& context, Kind kind, std::string_view what, Code absent) {
  TRY(auto command, command<ResultCommand>(context.input, decode_result));
  Bytes answer;
  TRY_OK(walk_instance(
      context, command->id,
      [&](Walk& walk, Instance& instance, const Definition& definition) -> Result<bool> {
        uint32_t step = definition.find(command->step);
        if (step != kNoStep && definition.steps[step].kind != kind)
          return fail(Code::invalid, "WRONG_STEP_TYPE",
                      "step \"" + command->step + "\" is a " + definition.steps[step].type +
                          ", not a " + std::string(what));
        // An unknown step is not found, whether or not the instance is finished.
        if (is_final(instance.status) && step != kNoStep) return finished(instance);
        Token* token = step == kNoStep ? nullptr : walk.token_at(step);
        if (!token && command->keep && step != kNoStep) {
          TRY_OK(check_outputs(context, definition.steps[step], *command->variables));
          TRY_OK(keep_for_step(walk, instance, step, command->variables));
          answer = R"({"kept":true})";
          return true;
        }
        if (!token)
          return fail(absent, "NOT_WAITING",
                      "instance \"" + command->id + "\" has no open " + std::string(what) +
                          " at step \"" + command->step + "\"" +
                          (absent == Code::not_found ? " (not found)" : ""));
        TRY_OK(check_outputs(context, definition.steps[step], *command->variables));
        merge_shallow_into(walk, *command->variables);
        walk.complete(token->execution);
        return true;
      }));
  return answer;
}

Result<Bytes> task(TurnContext& context) {
  return settle(context, Kind::user_task, "USER_TASK", Code::not_found);
}
Result<Bytes> signal(TurnContext& context) {
  return settle(context, Kind::wait, "WAIT", Code::conflict);
}

Result<Bytes> cancel(TurnContext& context) {
  TRY(auto command, command<CancelCommand>(context.input, decode_cancel));
  context.reason = command->reason;
  Bytes answer;
  TRY_OK(walk_instance(
      context, command->instance_id,
      [&](Walk& walk, Instance& instance, const Definition& definition) -> Result<bool> {
        if (is_final(instance.status)) return finished(instance);
        walk.cancel(command->reason);
        answer = instance_json(instance, definition);
        return true;
      }));
  return answer;
}

Result<Bytes> timer(TurnContext& context) {
  if (auto of_limit = parse_limiter_timer(context.input.settles)) {
    TRY_OK(Slots(context.turn, of_limit->tenant).wake(*of_limit));
    return Bytes();
  }
  if (auto of_schedule = parse_schedule_timer(context.input.settles)) {
    TRY_OK(run_schedule(context, *of_schedule));
    return Bytes();
  }
  if (auto of_attempt = parse_attempt_timer(context.input.settles)) {
    TRY_OK(expire_attempt(context, *of_attempt));
    return Bytes();
  }
  if (auto of_signal = parse_signal_timer(context.input.settles)) {
    context.tenant = of_signal->tenant;
    TRY_OK(expire_signal(context, of_signal->signal_id));
    return Bytes();
  }
  if (auto kept = parse_retention_timer(context.input.settles)) {
    context.tenant = kept->tenant;
    auto instance = context.instance(kept->instance_id);
    if (!instance && instance.error().is(kNoInstance)) return Bytes();
    TRY_OK(instance);
    if (static_cast<uint8_t>((*instance)->status) == kept->status)
      TRY_OK(forget_instance(context, **instance));
    return Bytes();
  }
  TRY(TimerId id, parse_timer_effect_id(context.input.settles));
  context.tenant = id.tenant;
  auto execution = parse_ordinal_id(id.execution_id);
  if (!execution) return Bytes();
  TRY_OK(walk_instance(context, execution->instance_id,
                       [&](Walk& walk, Instance& instance, const Definition&) -> Result<bool> {
                         if (is_final(instance.status)) return false;
                         walk.fire(execution->ordinal, id.index);
                         return true;
                       }));
  return Bytes();
}

struct Verb {
  std::string_view name;
  Result<Bytes> (*run)(TurnContext& context);
};
constexpr Verb kVerbs[] = {
    {verb::complete, complete},
    {verb::start, start},
    {verb::timer, timer},
    {verb::fail, fail_job},
    {verb::task, task},
    {verb::signal, signal},
    {verb::cancel, cancel},
    {verb::deploy, deploy},
    {verb::manage_definition, manage_definition},
    {verb::upload, upload},
    {verb::operate, operate},
    {verb::pause_definition, pause_definition},
    {verb::pause_type, pause_type},
    {verb::chain, chain_on},
    {verb::put_schedule, put_schedule},
    {verb::operate_schedule, operate_schedule},
    {verb::next_run, next_run},
    {verb::attempt, attempt},
    {verb::publish, publish_signal},
    {verb::drop_signal, drop_signal},
    {verb::forget, forget},
    {verb::set_retention, set_retention},
    {verb::call, call_child},
    {verb::child_ended, child_ended},
    {verb::cancel_child, cancel_child},
};

}  // namespace

Result<void> check_outputs(TurnContext& context, const Step& step, const Variables& result) {
  if (!step.outputs_schema) return {};
  return context.check_schema(*step.outputs_schema, result.object,
                              "the outputsSchema of step \"" + step.id + "\"");
}

Result<Bytes> Program::run(Turn& turn, const Input& input) const {
  for (const Verb& v : kVerbs) {
    if (v.name != input.verb) continue;
    TurnContext context(turn, input);
    return v.run(context);
  }
  return fail(Code::internal, "NO_VERB",
              "the processes program has no verb \"" + input.verb + "\"");
}

void Program::view(const Committed& frame, ViewRows& out) const {
  for (const Bytes& bytes : frame.notes) {
    auto note = decode_note_head(bytes);
    if (!note) continue;
    Bytes position = rows::position(note->started, note->instance_id);
    std::string_view tenant = note->tenant;
    if (note->after == kForgotten) {
      out.erase(
          rows::definition_prefix(tenant, note->definition_id, static_cast<Status>(note->before)) +
          position);
      if (!note->business_key.empty())
        out.erase(rows::business_prefix(tenant, note->business_key) + position);
      out.erase_prefix(rows::history_prefix(tenant, note->instance_id));
      continue;
    }
    if (note->before == 0 && !note->business_key.empty())
      out.put(rows::business_prefix(tenant, note->business_key) + position, {});
    if (note->before != static_cast<uint8_t>(note->after)) {
      if (note->before)
        out.erase(rows::definition_prefix(tenant, note->definition_id,
                                          static_cast<Status>(note->before)) +
                  position);
      out.put(rows::definition_prefix(tenant, note->definition_id, note->after) + position, {});
    }
    Bytes entry;
    Writer(entry).sint(frame.now);
    out.put(rows::history(tenant, note->instance_id, frame.seq), entry += note_tail(bytes));
    each_fact(note_tail(bytes), [&](const Fact& f) {
      if (f.kind == Fact::Kind::event || f.step_kind != Kind::user_task) return;
      Time entered = f.kind == Fact::Kind::entered ? frame.now : f.entered;
      Bytes key = rows::task(tenant, entered, note->instance_id, f.ordinal);
      if (f.kind == Fact::Kind::ended)
        out.erase(key);
      else
        out.put(key, encode(UserTask{
                         std::string(note->instance_id), std::string(note->definition_id),
                         std::string(note->business_key), f.step, f.text, f.ordinal, entered}));
    });
  }
}

}  // namespace pawl::processes

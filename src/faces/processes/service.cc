#include "faces/processes/service.h"

#include "base/log.h"
#include "faces/processes/definition/policies.h"
#include "faces/processes/limits.h"
#include "faces/processes/outcome_collector.h"
#include "faces/processes/run/walk.h"
#include "json/text.h"

namespace pawl::processes {

Service::Service(KernelAccess& kernel, WorkQueue& work, QuarantineAccess quarantine,
                 ServiceOptions options)
    : kernel_(kernel),
      work_(work),
      quarantine_(std::move(quarantine)),
      options_(options),
      counts_(kernel) {
  restore_pauses();
}

// A pause is stored in a cell. The queues keep pauses in memory, so they are set again at start.
void Service::restore_pauses() {
  auto done = kernel_.snapshot().scan(paused_prefix(), [&](BytesView key, const Cell&) {
    std::vector<std::string> parts = parts_of(key);
    if (parts.size() == 4) work_.pause(kProgram, parts[2], parts[3], true);
    return true;
  });
  // Damaged rows are rebuilt by the host, which then makes a new face.
  if (!done) log(Level::error, done.error().message, {{"code", done.error().reason}});
}

// The cells of all tenants together begin with '~' where a tenant's cells have the tenant's name: a
// tenant of such a name would write among them.
Result<void> check_tenant(std::string_view tenant) {
  if (!tenant.starts_with('~')) return {};
  return fail(Code::invalid, "BAD_TENANT",
              "tenant \"" + std::string(tenant.substr(0, 64)) +
                  "\" begins with '~', which is reserved: give the tenant another name");
}

void send_command(KernelAccess& kernel, Submitter submitter, std::string_view verb, Bytes body,
                  Decoded decoded, Done done) {
  if (auto good = check_tenant(submitter.caller.tenant); !good)
    return done(fail(std::move(good.error())));
  Input input;
  input.program = kProgram;
  input.verb = verb;
  input.body = std::move(body);
  input.caller = std::move(submitter.caller);
  input.once = std::move(submitter.once);
  input.decoded = std::move(decoded);
  kernel.submit(std::move(input), [done = std::move(done)](Result<Answer> answer) mutable {
    if (answer)
      done(std::move(answer->body));
    else
      done(fail(std::move(answer.error())));
  });
}

void Service::send(Submitter submitter, std::string_view verb, Bytes body, Decoded decoded,
                   Done done) {
  send_command(kernel_, std::move(submitter), verb, std::move(body), std::move(decoded),
               std::move(done));
}

template <class Command>
void Service::submit(Submitter submitter, std::string_view verb, Command command, Done done) {
  Bytes body = encode(command);
  send(std::move(submitter), verb, std::move(body),
       std::make_shared<const Command>(std::move(command)), std::move(done));
}

void Service::upload(Submitter submitter, json::Value document, Done done) {
  // Compiled here and not in the turn: the kernel's thread takes the result as `decoded`. Only a
  // replay compiles it again.
  auto made = make_definition(document);
  if (!made) return done(fail(std::move(made.error())));
  std::vector<std::string> warned = warnings(*made);
  auto definition = std::make_shared<const Definition>(std::move(*made));
  Bytes body = json::print(document);
  auto command =
      std::make_shared<const UploadCommand>(UploadCommand{std::move(document), definition});
  send(std::move(submitter), verb::deploy, std::move(body), command,
       [done = std::move(done), warned = std::move(warned)](Result<Bytes> answer) mutable {
         if (answer && !warned.empty()) {
           json::Array list;
           for (std::string& w : warned)
             list.push_back(json::Value(std::move(w)));
           // Inserts "warnings" into the verb's answer, before its last brace. Warnings are not
           // stored.
           answer->pop_back();
           json::append(*answer += ",\"warnings\":", json::Value(std::move(list)));
           *answer += '}';
         }
         done(std::move(answer));
       });
}

static Result<void> check_fairness(const StartCommand& command) {
  if (int32_t p = command.priority.value_or(0); p < -kMaxPriority || p > kMaxPriority)
    return fail(Code::invalid, "BAD_PRIORITY",
                "priority must be from " + std::to_string(-kMaxPriority) + " to " +
                    std::to_string(kMaxPriority) + ", got " + std::to_string(p));
  if (command.fairness_key && command.fairness_key->size() > kLimitKeyBytes)
    return fail(Code::invalid, "BAD_FAIRNESS_KEY",
                "fairnessKey may have " + std::to_string(kLimitKeyBytes) + " bytes");
  return {};
}

void Service::start(Submitter submitter, StartCommand command, Done done) {
  if (command.definition_id.empty())
    return done(fail(Code::invalid, "NO_DEFINITION_ID", "definitionId is required"));
  if (command.definition_id.size() > kDefinitionIdBytes)
    return done(fail(Code::not_found, "NO_DEFINITION", "definition not found: its id is too long"));
  if (command.business_key.size() > kBusinessKeyBytes)
    return done(fail(Code::invalid, "BAD_BUSINESS_KEY",
                     "businessKey may have " + std::to_string(kBusinessKeyBytes) + " bytes"));
  if (auto good = check_fairness(command); !good) return done(fail(std::move(good.error())));
  submit(std::move(submitter), verb::start, std::move(command), std::move(done));
}

void Service::complete(Submitter submitter, ResultCommand command, Done done) {
  if (auto held = check_lease(submitter.caller.tenant, command.id, command.worker); !held)
    return done(fail(std::move(held.error())));
  submit(std::move(submitter), verb::complete, std::move(command), std::move(done));
}
void Service::fail_job(Submitter submitter, FailCommand command, Done done) {
  if (auto held = check_lease(submitter.caller.tenant, command.job_id, command.worker); !held)
    return done(fail(std::move(held.error())));
  command.fenced = true;
  submit(std::move(submitter), verb::fail, std::move(command), std::move(done));
}
void Service::complete_task(Submitter submitter, ResultCommand command, Done done) {
  submit(std::move(submitter), verb::task, std::move(command), std::move(done));
}
void Service::signal(Submitter submitter, ResultCommand command, Done done) {
  submit(std::move(submitter), verb::signal, std::move(command), std::move(done));
}
void Service::publish(Submitter submitter, PublishCommand command, Done done) {
  if (command.name.empty() || command.name.size() > kNameBytes)
    return done(fail(Code::invalid, "BAD_SIGNAL",
                     "the name of a signal has 1 to " + std::to_string(kNameBytes) + " bytes"));
  if (command.key.size() > kBusinessKeyBytes)
    return done(fail(Code::invalid, "BAD_CORRELATION_KEY",
                     "correlationKey may have " + std::to_string(kBusinessKeyBytes) + " bytes"));
  if (command.variables->text.size() > kVariablesBytes)
    return done(fail(Code::too_large, "VARIABLES_TOO_LARGE",
                     "the variables of a signal may have " + std::to_string(kVariablesBytes) +
                         " bytes as JSON"));
  submit(std::move(submitter), verb::publish, std::move(command), std::move(done));
}
void Service::drop_signal(Submitter submitter, const std::string& signal_id, Done done) {
  if (signal_id.size() > kNameBytes)
    return done(fail(Code::not_found, "NO_SIGNAL", "no such signal: its id is too long"));
  send(std::move(submitter), verb::drop_signal, signal_id, {}, std::move(done));
}
void Service::forget(Submitter submitter, const std::string& instance_id, Done done) {
  auto found = instance(submitter.caller.tenant, instance_id);
  if (!found) return done(fail(std::move(found.error())));
  auto last = kernel_.read(instance_key(submitter.caller.tenant, instance_id));
  if (!last) return done(fail(std::move(last.error())));
  send(std::move(submitter), verb::forget, instance_id, {},
       [instance_id, event = last->version, done = std::move(done)](Result<Bytes> answer) mutable {
         if (!answer) return done(std::move(answer));
         // Nothing removes entries of the journal, so it shows the instance for ever.
         done(Bytes(json::print(json::object({{"instanceId", instance_id},
                                              {"deleted", true},
                                              {"lastEvent", static_cast<int64_t>(event)},
                                              {"archivedUntil", json::Value()}}))));
       });
}

void Service::set_retention(Submitter submitter, const json::Value& value, Done done) {
  Problems problems;
  read_retention(value, "retention", problems, problems);
  if (!problems.empty()) return done(fail(Code::invalid, "BAD_RETENTION", std::move(problems[0])));
  json::Object given;
  for (const json::Member& m : value.object())
    if (m.value.is_string() && !m.value.string().empty()) given.add(m.name, m.value);
  send(std::move(submitter), verb::set_retention, json::print(json::Value(std::move(given))), {},
       std::move(done));
}

Result<std::string> Service::retention(std::string_view tenant) const {
  TRY(Cell cell, kernel_.read(retention_key(tenant)));
  return cell.exists() ? std::string(cell.value()) : std::string("{}");
}

void Service::cancel(Submitter submitter, CancelCommand command, Done done) {
  submit(std::move(submitter), verb::cancel, std::move(command), std::move(done));
}

void Service::operate(Submitter submitter, const json::Value& order, Done done) {
  if (order.string_or("operation") == "retry") {
    const std::string& tenant = submitter.caller.tenant;
    const std::string id(order.string_or("instanceId"));
    auto released = release_parked(tenant, id);
    if (!released) return done(fail(std::move(released.error())));
    // An instance that has not failed waits only for what was released.
    auto waits =
        *released ? instance(tenant, id) : Result<std::shared_ptr<const Instance>>(nullptr);
    if (!waits) return done(fail(std::move(waits.error())));
    if (*waits && (*waits)->status != Status::failed) return done(instance_text(tenant, **waits));
  }
  send(std::move(submitter), verb::operate, json::print(order), {}, std::move(done));
}

void Service::retry_step(Submitter submitter, std::string_view id, std::string_view step,
                         const VariablesPtr& variables, Done done) {
  json::Value order = json::object({{"operation", "retry"},
                                    {"instanceId", id},
                                    {"stepId", step},
                                    {"reason", "the step was retried"},
                                    {"variables", json::Value(variables->object)}});
  operate(std::move(submitter), order, std::move(done));
}

void Service::pause_definition(Submitter submitter, const std::string& id, bool paused,
                               const std::string& reason, Done done) {
  send(std::move(submitter), verb::pause_definition,
       json::print(json::object({{"definitionId", id}, {"paused", paused}, {"reason", reason}})),
       {}, std::move(done));
}

void Service::activate(Submitter submitter, const std::string& id, uint32_t version, Done done) {
  json::Value order = json::object({{"operation", "activate"},
                                    {"definitionId", id},
                                    {"version", static_cast<int64_t>(version)}});
  send(std::move(submitter), verb::manage_definition, json::print(order), {}, std::move(done));
}

void Service::retire(Submitter submitter, const std::string& id, const std::string& reason,
                     Done done) {
  json::Value order =
      json::object({{"operation", "retire"}, {"definitionId", id}, {"reason", reason}});
  send(std::move(submitter), verb::manage_definition, json::print(order), {}, std::move(done));
}

// An instance that starts between the count and the turn keeps its document and runs on.
void Service::delete_definition(Submitter submitter, const std::string& id, Done done) {
  const std::string& tenant = submitter.caller.tenant;
  size_t running =
      counts_.total(tenant, id, Status::active) + counts_.total(tenant, id, Status::waiting);
  if (running)
    return done(fail(Code::conflict, "DEFINITION_IN_USE",
                     std::to_string(running) + " instances of definition \"" + id +
                         "\" run: retire it, and delete it when they have ended"));
  json::Value order = json::object({{"operation", "delete"}, {"definitionId", id}});
  send(std::move(submitter), verb::manage_definition, json::print(order), {}, std::move(done));
}

void Service::pause_type(Submitter submitter, const std::string& job_type, bool paused,
                         const std::string& reason, Done done) {
  if (job_type.empty() || job_type.size() > kNameBytes)
    return done(fail(Code::invalid, "BAD_JOB_TYPE",
                     "a job type has 1 to " + std::to_string(kNameBytes) + " bytes"));
  std::string tenant = submitter.caller.tenant;
  send(std::move(submitter), verb::pause_type,
       json::print(json::object({{"jobType", job_type}, {"paused", paused}, {"reason", reason}})),
       {}, [this, tenant, job_type, paused, done = std::move(done)](Result<Bytes> answer) mutable {
         // After the frame is durable: the cell is the truth, and the queue follows it.
         if (answer) work_.pause(kProgram, tenant, job_type, paused);
         done(std::move(answer));
       });
}

// A job whose body cannot be read is left out; it is offered again when its lease ends.
uint64_t Service::poll(Poll poll, JobsDone done) {
  Time lease = poll.lease;
  poll.program = kProgram;
  Caller caller{poll.tenant, poll.worker, ""};
  return work_.poll(std::move(poll), [this, lease, caller = std::move(caller),
                                      done = std::move(done)](std::vector<Leased> leased) mutable {
    std::vector<PolledJob> jobs;
    jobs.reserve(leased.size());
    bool timed = false;
    for (const Leased& l : leased) {
      auto job = decode_job(l.effect->body);
      if (!job) continue;
      timed = timed || !job->attempt_timeout.empty();
      jobs.push_back({std::move(*job), l.effect->queue, l.effect->id, l.until - lease, l.until});
    }
    if (!timed) return done(std::move(jobs));
    begin_attempts(caller, std::move(jobs), std::move(done));
  });
}

// A worker sees a job with a timeout when its timer is durable: no crash leaves an attempt without
// one. A job whose timer cannot be set is given back.
void Service::begin_attempts(const Caller& caller, std::vector<PolledJob> jobs, JobsDone done) {
  std::vector<size_t> timed;
  std::vector<AttemptCommand> commands;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].job.attempt_timeout.empty()) continue;
    timed.push_back(i);
    commands.push_back({jobs[i].job.id, caller.user});
  }
  auto answer = [this, timed, jobs = std::move(jobs),
                 done = std::move(done)](OutcomeCollector::Outcomes outcomes) mutable {
    std::vector<bool> refused(jobs.size());
    for (size_t i = 0; i < timed.size(); ++i)
      refused[timed[i]] = !outcomes[i];
    std::vector<PolledJob> out;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (refused[i])
        work_.release(jobs[i].effect_id);
      else
        out.push_back(std::move(jobs[i]));
    }
    done(std::move(out));
  };
  auto collector = OutcomeCollector::create(commands.size(), std::move(answer));
  for (size_t i = 0; i < commands.size(); ++i)
    submit({caller}, verb::attempt, std::move(commands[i]),
           OutcomeCollector::callback(collector, i));
}

Result<Service::FoundJob> Service::find_job(std::string_view tenant,
                                            std::string_view job_id) const {
  auto missing = [&] {
    return fail(Code::not_found, "NO_JOB",
                "job \"" + std::string(job_id.substr(0, 64)) + "\" not found");
  };
  auto parsed = parse_ordinal_id(job_id);
  if (!parsed) return missing();
  auto found = instance(tenant, parsed->instance_id);
  if (!found && found.error().code == Code::not_found) return missing();
  if (!found) return fail(std::move(found.error()));
  FoundJob out{std::move(*found), parsed->ordinal};
  if (out.ordinal == 0 || out.ordinal > out.instance->ordinals) return missing();
  for (const Token& t : out.instance->tokens)
    if (t.job == out.ordinal && t.state == TokenState::running) out.token = &t;
  return out;
}

Result<void> Service::check_lease(std::string_view tenant, std::string_view job_id,
                                  std::string_view worker) const {
  if (!options_.strict_leases) return {};
  auto job = find_job(tenant, job_id);
  // The program answers for a job that has ended or never was.
  if (!job || !job->token || is_final(job->instance->status)) return {};
  auto place = work_.place_of(job_effect_id(job_id, job->token->tries));
  if (place && place->state == WorkQueue::Place::State::leased && place->worker == worker)
    return {};
  return fail(Code::precondition, "LEASE_LOST",
              "worker \"" + std::string(worker.substr(0, 64)) +
                  "\" does not hold the lease of job \"" + std::string(job_id) +
                  "\": poll for it again (--strict-leases)");
}

Result<Time> Service::extend_lease(std::string_view tenant, std::string_view job_id,
                                   std::string_view worker, Time lease) {
  if (worker.empty()) return fail(Code::invalid, "NO_WORKER", "workerId is required");
  TRY(FoundJob job, find_job(tenant, job_id));
  // Whole microseconds, which every client can read.
  Time until = (now() + lease) / kMicrosecond * kMicrosecond;
  auto extended = job.token ? work_.extend(job_effect_id(job_id, job.token->tries), worker, until)
                            : std::nullopt;
  if (extended) return *extended;
  return fail(Code::precondition, "LEASE_LOST",
              "worker \"" + std::string(worker.substr(0, 64)) +
                  "\" does not hold the lease of job \"" + std::string(job_id) +
                  "\": it has ended, or another worker may have the job");
}

std::vector<WorkQueue::Depth> Service::depths(std::string_view tenant) const {
  std::vector<WorkQueue::Depth> out = work_.depths();
  std::erase_if(
      out, [&](const WorkQueue::Depth& d) { return d.program != kProgram || d.tenant != tenant; });
  return out;
}

Result<std::shared_ptr<const DefinitionHead>> Service::head(std::string_view tenant,
                                                            std::string_view id) const {
  TRY(auto head, read_as<DefinitionHead>(kernel_, head_key(tenant, id), decode_head));
  if (!head || head->deleted)
    return fail(Code::not_found, "NO_DEFINITION",
                "definition \"" + std::string(id) + "\" not found");
  return head;
}

Result<std::shared_ptr<const Definition>> Service::definition(std::string_view tenant,
                                                              std::string_view id,
                                                              uint32_t version) const {
  if (id.size() > kDefinitionIdBytes)
    return fail(Code::not_found, "NO_DEFINITION", "definition not found: its id is too long");
  if (version == 0) {
    TRY(auto head, this->head(tenant, id));
    version = head->current();
  }
  TRY(auto found, read_as<Definition>(kernel_, version_key(tenant, id, version), decode_version));
  if (!found)
    return fail(Code::not_found, "NO_DEFINITION",
                "version " + std::to_string(version) + " of definition \"" + std::string(id) +
                    "\" not found");
  return found;
}

Result<std::shared_ptr<const Instance>> Service::instance(std::string_view tenant,
                                                          std::string_view id) const {
  // A longer id cannot exist and must not become a key.
  if (id.size() <= kNameBytes) {
    TRY(auto found, read_as<Instance>(kernel_, instance_key(tenant, id), decode_instance));
    if (found) return found;
  }
  return fail(Code::not_found, "NO_INSTANCE",
              "instance \"" + std::string(id.substr(0, 64)) + "\" not found");
}

// Steps are stored as indexes, so their names come from the definition.
Result<std::string> Service::instance_text(std::string_view tenant,
                                           const Instance& instance) const {
  TRY(auto definition, this->definition(tenant, instance.definition_id, instance.version));
  return instance_json(instance, *definition);
}

}  // namespace pawl::processes

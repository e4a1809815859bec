#include "faces/processes/service.h"

#include "base/log.h"
#include "faces/processes/limits.h"
#include "faces/processes/run/walk.h"
#include "json/text.h"

namespace pawl::processes {

Service::Service(KernelAccess& kernel, WorkQueue& work)
    : kernel_(kernel), work_(work), counts_(kernel) {
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

// `decoded` is the body as the program takes it; the bytes are for the journal. It may be null.
void Service::send(Submitter submitter, std::string_view verb, Bytes body, Decoded decoded,
                   Done done) {
  Input input;
  input.program = kProgram;
  input.verb = verb;
  input.body = std::move(body);
  input.caller = std::move(submitter.caller);
  input.once = std::move(submitter.once);
  input.decoded = std::move(decoded);
  kernel_.submit(std::move(input), [done = std::move(done)](Result<Answer> answer) mutable {
    if (answer)
      done(std::move(answer->body));
    else
      done(fail(std::move(answer.error())));
  });
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
  send(std::move(submitter), verb::upload, std::move(body), command,
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

void Service::start(Submitter submitter, StartCommand command, Done done) {
  if (command.definition_id.empty())
    return done(fail(Code::invalid, "NO_DEFINITION_ID", "definitionId is required"));
  if (command.definition_id.size() > kDefinitionIdBytes)
    return done(fail(Code::not_found, "NO_DEFINITION", "definition not found: its id is too long"));
  if (command.business_key.size() > kBusinessKeyBytes)
    return done(fail(Code::invalid, "BAD_BUSINESS_KEY",
                     "businessKey may have " + std::to_string(kBusinessKeyBytes) + " bytes"));
  submit(std::move(submitter), verb::start, std::move(command), std::move(done));
}

void Service::complete(Submitter submitter, ResultCommand command, Done done) {
  submit(std::move(submitter), verb::complete, std::move(command), std::move(done));
}
void Service::fail_job(Submitter submitter, FailCommand command, Done done) {
  submit(std::move(submitter), verb::fail, std::move(command), std::move(done));
}
void Service::complete_task(Submitter submitter, ResultCommand command, Done done) {
  submit(std::move(submitter), verb::task, std::move(command), std::move(done));
}
void Service::signal(Submitter submitter, ResultCommand command, Done done) {
  submit(std::move(submitter), verb::signal, std::move(command), std::move(done));
}
void Service::cancel(Submitter submitter, CancelCommand command, Done done) {
  submit(std::move(submitter), verb::cancel, std::move(command), std::move(done));
}

void Service::operate(Submitter submitter, const json::Value& order, Done done) {
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
  return work_.poll(std::move(poll), [lease,
                                      done = std::move(done)](std::vector<Leased> leased) mutable {
    std::vector<PolledJob> jobs;
    jobs.reserve(leased.size());
    for (const Leased& l : leased) {
      auto job = decode_job(l.effect->body);
      if (job)
        jobs.push_back({std::move(*job), l.effect->queue, l.effect->id, l.until - lease, l.until});
    }
    done(std::move(jobs));
  });
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
  if (!head)
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
    version = static_cast<uint32_t>(head->versions.size());
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

#include "faces/processes/grpc/workflow_engine_service.h"

#include "faces/processes/grpc/convert.h"
#include "faces/processes/limits.h"
#include "json/text.h"

namespace pawl::processes {

std::string metadata(const grpc::ServerContextBase& context, const char* key) {
  auto it = context.client_metadata().find(key);
  return it == context.client_metadata().end() ? std::string()
                                               : std::string(it->second.data(), it->second.size());
}

Result<Caller> WorkflowEngineService::caller_of(const Context& context,
                                                std::string_view method) const {
  std::string operation = "/workflow.v1.WorkflowEngine/";
  operation += method;
  TRY(wire::AdmittedCall admitted, admit_(wire::call_of(context, operation)));
  return std::move(admitted.caller);
}

template <class Read>
WorkflowEngineService::Reactor* WorkflowEngineService::read(Context* context,
                                                            std::string_view method, Read&& read) {
  Reactor* reactor = context->DefaultReactor();
  Result<Caller> caller = caller_of(*context, method);
  Result<void> done = caller ? read(*caller) : Result<void>(fail(caller.error()));
  reactor->Finish(done ? grpc::Status::OK : status_of(done.error()));
  return reactor;
}

template <class Read>
WorkflowEngineService::Reactor* WorkflowEngineService::read_aside(Context* context,
                                                                  std::string_view method,
                                                                  Read read) {
  Reactor* reactor = context->DefaultReactor();
  Result<Caller> caller = caller_of(*context, method);
  if (!caller) {
    reactor->Finish(status_of(caller.error()));
    return reactor;
  }
  auto run = [context, reactor, read = std::move(read), caller = *caller] {
    // The caller may have left while the read waited.
    if (context->IsCancelled()) return reactor->Finish(grpc::Status::CANCELLED);
    Result<void> done = read(caller);
    reactor->Finish(done ? grpc::Status::OK : status_of(done.error()));
  };
  if (!long_reads_)
    run();
  else if (!long_reads_(caller->tenant, run))
    reactor->Finish(status_of(Error{Code::exhausted, "TENANT_LONG_READS",
                                    "too many long reads of this tenant wait; retry later"}));
  return reactor;
}

template <class Send, class Filled>
WorkflowEngineService::Reactor* WorkflowEngineService::command(Context* context,
                                                               std::string_view method, Send&& send,
                                                               Filled&& filled) {
  Reactor* reactor = context->DefaultReactor();
  Result<Caller> caller = caller_of(*context, method);
  if (!caller) {
    reactor->Finish(status_of(caller.error()));
    return reactor;
  }
  TransportCost cost(wire::kGrpcCallUs);
  send(Submitter{std::move(*caller), metadata(*context, "idempotency-key")},
       // `out` of the callers stays valid until Finish(), as gRPC promises, also when the answer
       // comes later.
       Done([reactor, filled](Result<Bytes> answer) mutable {
         if (answer) {
           Result<void> done = filled(*answer);
           reactor->Finish(done ? grpc::Status::OK : status_of(done.error()));
         } else {
           reactor->Finish(status_of(answer.error()));
         }
       }));
  return reactor;
}

namespace {

// For calls whose response has no fields.
Result<void> nothing(const Bytes&) { return {}; }

// The HTTP routes have ids in their paths; here they may be missing.
std::unexpected<Error> no_id(std::string what) {
  return fail(Code::invalid, "NO_ID", std::move(what));
}

struct PageRequest {
  size_t page, size;
};
Result<PageRequest> page_of(int32_t page, int32_t size) {
  if (page < 0) return fail(Code::invalid, "BAD_PAGE", "page must not be negative");
  return PageRequest{static_cast<size_t>(page),
                     // 20 is the default, as over HTTP; larger pages are cut to kMaxPage.
                     size <= 0 ? 20 : std::min<size_t>(static_cast<size_t>(size), kMaxPage)};
}

std::unexpected<Error> not_json() {
  return fail(Code::invalid, "NO_JSON_FORM",
              "a number is infinite or not a number, which JSON cannot hold");
}

Result<VariablesPtr> variables_of(const google::protobuf::Struct& in) {
  if (!is_json(in)) return not_json();
  return make_variables(from_struct(in));
}

}  // namespace

// The answer's warnings have no field in the response and are dropped.
WorkflowEngineService::Reactor* WorkflowEngineService::UploadDefinition(
    Context* context, const wf::UploadDefinitionRequest* in, wf::UploadDefinitionResponse* out) {
  return command(
      context, "UploadDefinition",
      [&](Submitter submitter, Done done) {
        if (!is_json(in->definition())) return done(not_json());
        verbs_.upload(std::move(submitter), to_document(in->definition()), std::move(done));
      },
      [out](const Bytes& answer) -> Result<void> {
        TRY(json::Value summary, json::parse(answer));
        out->set_id(std::string(summary.string_or("id")));
        out->set_version(static_cast<int32_t>(summary.find("version")->as_int64().value_or(0)));
        if (auto t = parse_rfc3339(summary.string_or("uploadedAt")))
          to_timestamp(*t, out->mutable_uploaded_at());
        return {};
      });
}

WorkflowEngineService::Reactor* WorkflowEngineService::GetDefinition(
    Context* context, const wf::GetDefinitionRequest* in, wf::GetDefinitionResponse* out) {
  return read(context, "GetDefinition", [&](const Caller& caller) -> Result<void> {
    if (in->id().empty()) return no_id("id is required");
    TRY(auto definition, verbs_.definition(caller.tenant, in->id(),
                                           static_cast<uint32_t>(std::max(0, in->version()))));
    fill(out->mutable_definition(), *definition);
    return {};
  });
}

WorkflowEngineService::Reactor* WorkflowEngineService::ListDefinitions(
    Context* context, const wf::ListDefinitionsRequest* in, wf::ListDefinitionsResponse* out) {
  return read_aside(
      context, "ListDefinitions", [this, in, out](const Caller& caller) -> Result<void> {
        TRY(PageRequest page, page_of(in->page(), in->page_size()));
        TRY(auto found, verbs_.definitions(caller.tenant, in->keyword(), page.page, page.size));
        // A list has only id, version and name; GetDefinition has the whole definition.
        for (const Verbs::DefinitionSummary& s : found.first) {
          wf::WorkflowDefinition* one = out->add_definitions();
          one->set_id(s.id);
          one->set_version(static_cast<int32_t>(s.version));
          one->set_name(s.name);
        }
        out->set_total(static_cast<int32_t>(found.second));
        return {};
      });
}

WorkflowEngineService::Reactor* WorkflowEngineService::StartInstance(
    Context* context, const wf::StartInstanceRequest* in, wf::StartInstanceResponse* out) {
  return command(
      context, "StartInstance",
      [&](Submitter submitter, Done done) {
        auto variables = variables_of(in->variables());
        if (!variables) return done(fail(variables.error()));
        StartCommand start{.definition_id = in->definition_id(),
                           .version = static_cast<uint32_t>(std::max(0, in->definition_version())),
                           .business_key = in->business_key(),
                           .variables = std::move(*variables)};
        if (in->has_priority()) start.priority = in->priority();
        if (in->has_fairness_key()) start.fairness_key = in->fairness_key();
        verbs_.start(std::move(submitter), std::move(start), std::move(done));
      },
      [out](const Bytes& answer) {
        out->set_existing(answer.ends_with(kExistingEnd));
        return fill(out->mutable_instance(), answer);
      });
}

WorkflowEngineService::Reactor* WorkflowEngineService::GetInstance(Context* context,
                                                                   const wf::GetInstanceRequest* in,
                                                                   wf::GetInstanceResponse* out) {
  return read(context, "GetInstance", [&](const Caller& caller) -> Result<void> {
    if (in->id().empty()) return no_id("id is required");
    TRY(auto instance, verbs_.instance(caller.tenant, in->id()));
    TRY(std::string text, verbs_.instance_text(caller.tenant, *instance));
    return fill(out->mutable_instance(), text);
  });
}

WorkflowEngineService::Reactor* WorkflowEngineService::GetInstanceHistory(
    Context* context, const wf::GetInstanceHistoryRequest* in,
    wf::GetInstanceHistoryResponse* out) {
  return read_aside(context, "GetInstanceHistory",
                    [this, in, out](const Caller& caller) -> Result<void> {
                      if (in->id().empty()) return no_id("id is required");
                      TRY(std::vector<ExecutionRow> rows, verbs_.history(caller.tenant, in->id()));
                      for (const ExecutionRow& row : rows)
                        fill(out->add_executions(), in->id(), row);
                      return {};
                    });
}

WorkflowEngineService::Reactor* WorkflowEngineService::CancelInstance(
    Context* context, const wf::CancelInstanceRequest* in, wf::CancelInstanceResponse* out) {
  return command(
      context, "CancelInstance",
      [&](Submitter submitter, Done done) {
        if (in->id().empty()) return done(no_id("id is required"));
        verbs_.cancel(std::move(submitter), {in->id(), in->reason()}, std::move(done));
      },
      [out](const Bytes& answer) { return fill(out->mutable_instance(), answer); });
}

WorkflowEngineService::Reactor* WorkflowEngineService::ListInstances(
    Context* context, const wf::ListInstancesRequest* in, wf::ListInstancesResponse* out) {
  return read_aside(
      context, "ListInstances", [this, in, out](const Caller& caller) -> Result<void> {
        TRY(PageRequest page, page_of(in->page(), in->page_size()));
        InstanceFilter filter{
            .definition_id = in->definition_id(), .status = {}, .business_key = in->business_key()};
        if (!wf::InstanceStatus_IsValid(in->status()))
          return fail(
              Code::invalid, "BAD_STATUS",
              "status must be a value of InstanceStatus, got " + std::to_string(in->status()));
        if (in->status() != wf::INSTANCE_STATUS_UNSPECIFIED)
          filter.status = static_cast<Status>(in->status());
        TRY(InstancePage found, verbs_.instances(caller.tenant, filter, page.page, page.size));
        for (const auto& instance : found.items) {
          TRY(std::string text, verbs_.instance_text(caller.tenant, *instance));
          TRY_OK(fill(out->add_instances(), text));
        }
        out->set_total(static_cast<int32_t>(found.total));
        return {};
      });
}

namespace {

// A poll that may wait. When its caller disconnects, jobs that come afterwards are released.
class PollReactor final : public grpc::ServerUnaryReactor {
 public:
  void begin(Verbs& verbs, Poll poll, wf::PollJobsResponse* out) {
    auto self = self_;
    uint64_t id = verbs.poll(std::move(poll), [self, &verbs, out](std::vector<PolledJob> jobs) {
      // The thread that sets `over_` first finishes the call: Finish() may be called only once.
      if (self->over_.exchange(true)) {
        for (const PolledJob& job : jobs)
          verbs.release(job.effect_id);
        return;
      }
      for (const PolledJob& job : jobs)
        fill(out->add_jobs(), job);
      self->Finish(grpc::Status::OK);
    });
    verbs_ = &verbs;
    id_ = id;
    // OnCancel() may have come before the poll had a number.
    if (cancelled_) give_up();
  }
  void refuse(const Error& error) {
    over_ = true;
    Finish(status_of(error));
  }
  void OnCancel() override {
    cancelled_ = true;
    if (id_) give_up();
  }
  void OnDone() override { self_.reset(); }
  // Keeps the reactor until gRPC is done with it and the poll has ended.
  std::shared_ptr<PollReactor> self_;

 private:
  void give_up() {
    if (over_.exchange(true)) return;
    verbs_.load()->cancel_poll(id_);
    Finish(grpc::Status::CANCELLED);
  }
  // OnCancel() and the answer of the poll run on different threads.
  std::atomic<bool> over_{false}, cancelled_{false};
  std::atomic<uint64_t> id_{0};
  std::atomic<Verbs*> verbs_{nullptr};
};

}  // namespace

// Defaults: one job, a lease of 30 s, no wait. Leases are cut to a day and waits to kMaxWaitMs.
// Without job types the answer is empty.
WorkflowEngineService::Reactor* WorkflowEngineService::PollJobs(Context* context,
                                                                const wf::PollJobsRequest* in,
                                                                wf::PollJobsResponse* out) {
  auto reactor = std::make_shared<PollReactor>();
  reactor->self_ = reactor;
  Result<Caller> caller = caller_of(*context, "PollJobs");
  if (!caller) {
    reactor->refuse(caller.error());
    return reactor.get();
  }
  if (in->worker_id().empty()) {
    reactor->refuse({Code::invalid, "NO_WORKER", "worker_id is required"});
    return reactor.get();
  }
  Poll poll{.tenant = caller->tenant,
            .queues = {in->job_types().begin(), in->job_types().end()},
            .worker = in->worker_id()};
  poll.limit =
      in->max_jobs() <= 0 ? 1 : std::min<size_t>(static_cast<size_t>(in->max_jobs()), kMaxJobs);
  poll.lease = lease_of(in->lease_seconds());
  int32_t wait = in->max_wait_ms() ? in->max_wait_ms() : in->early_max_wait_ms();
  poll.wait = std::clamp<int64_t>(wait, 0, kMaxWaitMs) * kMillisecond;
  reactor->begin(verbs_, std::move(poll), out);
  return reactor.get();
}

WorkflowEngineService::Reactor* WorkflowEngineService::ExtendJobLease(
    Context* context, const wf::ExtendJobLeaseRequest* in, wf::ExtendJobLeaseResponse* out) {
  return read(context, "ExtendJobLease", [&](const Caller& caller) -> Result<void> {
    if (in->job_id().empty()) return no_id("job_id is required");
    TRY(Time until, verbs_.extend_lease(caller.tenant, in->job_id(), in->worker_id(),
                                        lease_of(in->lease_seconds())));
    out->set_accepted(true);
    to_timestamp(until, out->mutable_lock_expires_at());
    return {};
  });
}

WorkflowEngineService::Reactor* WorkflowEngineService::CompleteJob(Context* context,
                                                                   const wf::CompleteJobRequest* in,
                                                                   wf::CompleteJobResponse*) {
  return command(
      context, "CompleteJob",
      [&](Submitter submitter, Done done) {
        if (in->job_id().empty()) return done(no_id("job_id is required"));
        auto variables = variables_of(in->variables_to_set());
        if (!variables) return done(fail(variables.error()));
        verbs_.complete(
            std::move(submitter),
            {.id = in->job_id(), .worker = in->worker_id(), .variables = std::move(*variables)},
            std::move(done));
      },
      nothing);
}

WorkflowEngineService::Reactor* WorkflowEngineService::FailJob(Context* context,
                                                               const wf::FailJobRequest* in,
                                                               wf::FailJobResponse*) {
  return command(
      context, "FailJob",
      [&](Submitter submitter, Done done) {
        if (in->job_id().empty()) return done(no_id("job_id is required"));
        verbs_.fail_job(std::move(submitter),
                        {in->job_id(), in->worker_id(), in->error_message(), in->retryable()},
                        std::move(done));
      },
      nothing);
}

WorkflowEngineService::Reactor* WorkflowEngineService::CompleteUserTask(
    Context* context, const wf::CompleteUserTaskRequest* in, wf::CompleteUserTaskResponse*) {
  return command(
      context, "CompleteUserTask",
      [&](Submitter submitter, Done done) {
        if (in->instance_id().empty() || in->user_task_step_id().empty())
          return done(no_id("instance_id and user_task_step_id are required"));
        auto variables = variables_of(in->result());
        if (!variables) return done(fail(variables.error()));
        verbs_.complete_task(std::move(submitter),
                             {.id = in->instance_id(),
                              .step = in->user_task_step_id(),
                              .worker = in->completed_by(),
                              .variables = std::move(*variables)},
                             std::move(done));
      },
      nothing);
}

WorkflowEngineService::Reactor* WorkflowEngineService::SignalWait(Context* context,
                                                                  const wf::SignalWaitRequest* in,
                                                                  wf::SignalWaitResponse*) {
  return command(
      context, "SignalWait",
      [&](Submitter submitter, Done done) {
        if (in->instance_id().empty() || in->wait_step_id().empty())
          return done(no_id("instance_id and wait_step_id are required"));
        auto variables = variables_of(in->variables());
        if (!variables) return done(fail(variables.error()));
        verbs_.signal(std::move(submitter),
                      {.id = in->instance_id(),
                       .step = in->wait_step_id(),
                       .worker = {},
                       .variables = std::move(*variables),
                       .keep = in->keep()},
                      std::move(done));
      },
      nothing);
}

WorkflowEngineService::Reactor* WorkflowEngineService::RetryStep(Context* context,
                                                                 const wf::RetryStepRequest* in,
                                                                 wf::RetryStepResponse* out) {
  return command(
      context, "RetryStep",
      [&](Submitter submitter, Done done) {
        if (in->instance_id().empty() || in->step_id().empty())
          return done(no_id("instance_id and step_id are required"));
        auto variables = variables_of(in->variables());
        if (!variables) return done(fail(variables.error()));
        verbs_.retry_step(std::move(submitter), in->instance_id(), in->step_id(),
                          std::move(*variables), std::move(done));
      },
      [out](const Bytes& answer) { return fill(out->mutable_instance(), answer); });
}

}  // namespace pawl::processes

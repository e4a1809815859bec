// Routes of jobs: poll, heartbeat, complete, fail.

#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/limits.h"

namespace pawl::processes {

namespace {

constexpr RequestShape kPoll{
    "PollRequest",
    {text("workerId", "The name of the worker.").required().example(R"("worker-1")"),
     texts("jobTypes", "The types of jobs that it runs.")
         .required()
         .range(1, kBatchItems)
         .example(R"(["charge-card"])"),
     integer("maxJobs", "How many jobs to lease; 0 or none: 10.").example("5"),
     integer("leaseSeconds", "How long the jobs are the worker's; 0 or none: 30."),
     integer("maxWaitMs", "How long to wait for the first job, at most a minute.")}};
constexpr AnswerShape kJob{
    "Job",
    {text("id"), text("instanceId"), text("stepExecutionId"), text("stepId").example(R"("charge")"),
     text("jobType").example(R"("charge-card")"), choice("status", {"LOCKED"}),
     text("workerId").example(R"("worker-1")"), time("lockedAt"),
     time("lockExpiresAt", "The end of the lease."), count("retriesRemaining"),
     variables("variables").example(R"({"amount":100})"), time("createdAt")}};
constexpr AnswerShape kJobs{"Jobs", {list("jobs", "Null when there are none.", kJob).or_null()}};
constexpr RequestShape kHeartbeat{
    "HeartbeatRequest",
    {text("workerId", "The worker that holds the lease.").example(R"("worker-1")"),
     integer("leaseSeconds", "How long from now; 0 or none: 30.")}};
constexpr AnswerShape kExtended{"ExtendedLease", {flag("accepted"), time("lockExpiresAt")}};
constexpr AnswerShape kExplanation{
    "JobExplanation",
    {choice("state", {"waiting-for-slot", "waiting-for-rate", "done", "suspended", "delayed",
                      "leased", "paused", "offered"}),
     text("reason", "The same in a sentence."), time("mayRunAt").optional(),
     text("workerId").optional(), time("until").optional(), count("offered").optional(),
     count("waitingPolls").optional(),
     variables("limit", "The limit for which the job waits.").optional(),
     count("running").optional(), count("concurrent").optional(), count("position").optional(),
     count("waiting").optional(), texts("heldBy", "Instances that hold the limit.").optional(),
     choice("instanceStatus", kInstanceStatuses).optional(), text("stepId").optional(),
     choice("status", kExecutionStatuses).optional(), time("endedAt").optional()}};

constexpr Operation kPollJobs{
    .id = "pollJobs", .body = {kPoll}, .replies = {{200, "The leased jobs.", kJobs}}};
constexpr Operation kExtendLease{.id = "extendJobLease",
                                 .path = &kJobPath,
                                 .body = {kHeartbeat},
                                 .replies = {{200, "The new end of the lease.", kExtended}},
                                 .errors = {409}};
constexpr Operation kCompleteJob{.id = "completeJob",
                                 .path = &kJobPath,
                                 .headers = &wire::kIdempotencyHeader,
                                 .body = {kResult},
                                 .replies = {{204, "The job is done, now or before."}},
                                 .errors = {409, 422}};
constexpr Operation kFailJob{.id = "failJob",
                             .path = &kJobPath,
                             .headers = &wire::kIdempotencyHeader,
                             .body = {kFail},
                             .replies = {{204, "The failure is recorded."}},
                             .errors = {409, 422}};
constexpr Operation kExplain{
    .id = "explainJob", .path = &kJobPath, .replies = {{200, "Why the job waits.", kExplanation}}};

Result<Poll> poll_command(const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  Poll poll;
  poll.tenant = request.caller.tenant;
  TRY(poll.worker, body.text(kPoll["workerId"]));
  TRY(poll.queues, body.texts(kPoll["jobTypes"]));
  TRY(int64_t max, body.integer(kPoll["maxJobs"]));
  TRY(int64_t lease, body.integer(kPoll["leaseSeconds"]));
  TRY(int64_t wait, body.integer(kPoll["maxWaitMs"]));
  if (poll.worker.empty()) return fail(Code::invalid, "NO_WORKER", "workerId is required");
  if (poll.queues.empty())
    return fail(Code::invalid, "NO_JOB_TYPES", "jobTypes must name at least one job type");
  if (poll.queues.size() > kBatchItems)
    return fail(Code::invalid, "TOO_MANY_JOB_TYPES",
                "jobTypes may name " + std::to_string(kBatchItems) + " job types");
  poll.limit = max <= 0 ? 10 : std::min<size_t>(static_cast<size_t>(max), kMaxJobs);
  poll.lease = lease_of(lease);
  poll.wait = std::clamp<int64_t>(wait, 0, kMaxWaitMs) * kMillisecond;
  return poll;
}

void poll(Service& service, wire::Request request, wire::Respond respond) {
  auto command = poll_command(request);
  if (!command) return respond(refusal(command.error()));
  std::string worker = command->worker;
  uint64_t waiting =
      service.poll(std::move(*command), [worker = std::move(worker), respond = std::move(respond)](
                                            std::vector<PolledJob> jobs) mutable {
        if (jobs.empty()) return respond(ok(200, "{\"jobs\":null}"));
        std::string out = "{\"jobs\":[";
        for (size_t i = 0; i < jobs.size(); ++i) {
          if (i) out += ',';
          append_job(out, jobs[i], worker);
        }
        respond(ok(200, out += "]}"));
      });
  // Jobs are not leased to a client that has disconnected.
  if (waiting && request.peer)
    request.peer->on_leave([&service, waiting] { service.give_up_poll(waiting); });
}

Result<std::string> heartbeat(Service& service, const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  TRY(std::string worker, body.text(kHeartbeat["workerId"]));
  TRY(int64_t lease, body.integer(kHeartbeat["leaseSeconds"]));
  TRY(Time until,
      service.extend_lease(request.caller.tenant, request.params[0], worker, lease_of(lease)));
  std::string out = "{\"accepted\":true,\"lockExpiresAt\":";
  append_time(out, until);
  return out += '}';
}

Result<ResultCommand> complete_command(const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  ResultCommand c{.id = request.params[0]};
  TRY(c.worker, body.text(kResult["workerId"]));
  TRY(c.variables, take_variables(body));
  return c;
}

void complete(Service& service, wire::Request request, wire::Respond respond) {
  auto command = complete_command(request);
  if (!command) return respond(refusal(command.error()));
  service.complete(submitter_of(request), std::move(*command), reply_with(std::move(respond), 204));
}

Result<FailCommand> fail_command(const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  FailCommand c{.job_id = request.params[0]};
  TRY(c.worker, body.text(kFail["workerId"]));
  TRY(c.message, body.text(kFail["errorMessage"]));
  TRY(c.retryable, body.flag(kFail["retryable"]));
  return c;
}

void fail_job(Service& service, wire::Request request, wire::Respond respond) {
  auto command = fail_command(request);
  if (!command) return respond(refusal(command.error()));
  service.fail_job(submitter_of(request), std::move(*command), reply_with(std::move(respond), 204));
}

}  // namespace

std::vector<wire::Route> job_routes(Service& s) {
  using wire::Request, wire::Respond;
  return {
      {"POST", "/v1/jobs/poll", [&s](Request r, Respond a) { poll(s, std::move(r), std::move(a)); },
       "Leases jobs of the given types. With maxWaitMs it waits for the first one.", &kPollJobs},
      {"POST", "/v1/jobs/{id}/heartbeat",
       [&s](Request r, Respond a) { respond_with(a, [&] { return heartbeat(s, r); }); },
       "Extends the lease of a worker that still runs the job; 409 when it does not hold it.",
       &kExtendLease},
      {"POST", "/v1/jobs/{id}/complete",
       [&s](Request r, Respond a) { complete(s, std::move(r), std::move(a)); },
       "Completes a job and merges its variables deeply. For a settled job it does nothing (204).",
       &kCompleteJob},
      {"POST", "/v1/jobs/{id}/fail",
       [&s](Request r, Respond a) { fail_job(s, std::move(r), std::move(a)); },
       "Fails a job. The job is offered again if it is retryable and retries are left.", &kFailJob},
      {"GET", "/v1/jobs/{id}/explain",
       [&s](Request r, Respond a) {
         respond_with(a, [&] { return s.explain(r.caller.tenant, r.params[0]); });
       },
       "Says why a job waits and when it may run.", &kExplain},
  };
}

}  // namespace pawl::processes

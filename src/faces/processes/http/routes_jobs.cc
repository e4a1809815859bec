// Routes of jobs: poll, heartbeat, complete, fail.

#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/limits.h"

namespace pawl::processes {

namespace {

Result<Poll> poll_command(const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  Poll poll;
  poll.tenant = request.caller.tenant;
  TRY(poll.worker, body.text("workerId"));
  TRY(poll.queues, body.texts("jobTypes"));
  TRY(int64_t max, body.integer("maxJobs", 0));
  TRY(int64_t lease, body.integer("leaseSeconds", 0));
  TRY(int64_t wait, body.integer("maxWaitMs", 0));
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
  TRY(std::string worker, body.text("workerId"));
  TRY(int64_t lease, body.integer("leaseSeconds", 0));
  TRY(Time until,
      service.extend_lease(request.caller.tenant, request.params[0], worker, lease_of(lease)));
  std::string out = "{\"accepted\":true,\"lockExpiresAt\":";
  append_time(out, until);
  return out += '}';
}

Result<ResultCommand> complete_command(const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  ResultCommand c{.id = request.params[0]};
  TRY(c.worker, body.text("workerId"));
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
  TRY(c.worker, body.text("workerId"));
  TRY(c.message, body.text("errorMessage"));
  TRY(c.retryable, body.flag("retryable"));
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
       "Leases jobs of the given types. With maxWaitMs it waits for the first one."},
      {"POST", "/v1/jobs/{id}/heartbeat",
       [&s](Request r, Respond a) { respond_with(a, [&] { return heartbeat(s, r); }); },
       "Extends the lease of a worker that still runs the job; 409 when it does not hold it."},
      {"POST", "/v1/jobs/{id}/complete",
       [&s](Request r, Respond a) { complete(s, std::move(r), std::move(a)); },
       "Completes a job and merges its variables deeply. For a settled job it does nothing (204)."},
      {"POST", "/v1/jobs/{id}/fail",
       [&s](Request r, Respond a) { fail_job(s, std::move(r), std::move(a)); },
       "Fails a job. The job is offered again if it is retryable and retries are left."},
      {"GET", "/v1/jobs/{id}/explain",
       [&s](Request r, Respond a) {
         respond_with(a, [&] { return s.explain(r.caller.tenant, r.params[0]); });
       },
       "Says why a job waits and when it may run."},
  };
}

}  // namespace pawl::processes

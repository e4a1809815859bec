// Commands of the processes face for user tasks and jobs. A person acts as a worker here: `job
// poll` leases jobs in the name of --worker, and the same name completes or fails them.

#include <fmt/format.h>

#include "cli/process_commands.h"

namespace pawl::cli {

using wire::percent_encode;

static Result<int> task_list(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(json::Value tasks, client->call("GET", "/pawl/v1/processes/tasks"));
  show(args, tasks, [&] {
    print_table(member(tasks, "items"),
                {"instanceId", "stepId", "name", "definitionId", "createdAt"});
  });
  return kDone;
}

static Result<int> task_complete(const Args& args) {
  TRY(std::string id, word(args, 0, "the instance"));
  TRY(std::string step, word(args, 1, "the user task's step"));
  TRY(json::Object variables, pairs(args.all("var")));
  json::Value body = json::object({{"variables", std::move(variables)}});
  return post_to(args,
                 fmt::format("/v1/instances/{}/user-tasks/{}/complete", percent_encode(id),
                             percent_encode(step)),
                 &body, "completed");
}

static Result<int> job_poll(const Args& args) {
  TRY(auto client, client_of(args));
  json::Array types;
  for (const auto& w : args.words)
    types.emplace_back(w);
  if (types.empty()) return fail(Code::invalid, kBadUsage, "name the job types");
  json::Value body = json::object({{"workerId", args.get("worker", "pawl-cli")},
                                   {"jobTypes", std::move(types)},
                                   {"maxJobs", json::Number{args.get("limit", "1")}}});
  if (args.has("wait"))
    body.object().add("maxWaitMs", static_cast<int64_t>(args.seconds("wait", 0) * 1000));
  TRY(json::Value jobs, client->call("POST", "/v1/jobs/poll", &body));
  show(args, jobs, [&] {
    print_table(member(jobs, "jobs"),
                {"id", "jobType", "instanceId", "stepId", "retriesRemaining", "variables"});
  });
  return kDone;
}

static Result<int> job_complete(const Args& args) {
  TRY(std::string id, word(args, 0, "the job"));
  TRY(json::Object variables, pairs(args.all("var")));
  json::Value body = json::object(
      {{"workerId", args.get("worker", "pawl-cli")}, {"variables", std::move(variables)}});
  return post_to(args, fmt::format("/v1/jobs/{}/complete", percent_encode(id)), &body, "completed");
}

static Result<int> job_fail(const Args& args) {
  TRY(std::string id, word(args, 0, "the job"));
  json::Value body =
      json::object({{"workerId", args.get("worker", "pawl-cli")},
                    {"errorMessage", args.get("error", "failed from the command line")},
                    {"retryable", args.has("retryable")}});
  return post_to(args, fmt::format("/v1/jobs/{}/fail", percent_encode(id)), &body, "failed");
}

static Result<int> explain(const Args& args) {
  TRY(std::string id, word(args, 0, "the job"));
  TRY(auto client, client_of(args));
  TRY(json::Value found,
      client->call("GET", fmt::format("/v1/jobs/{}/explain", percent_encode(id))));
  show(args, found, [&] {
    fmt::print("{}: {}\n", found.string_or("state"), found.string_or("reason"));
    if (const json::Value* holders = found.find("heldBy"); holders && holders->is_array())
      for (const json::Value& job : holders->array())
        fmt::print("  held by job {}\n", job.string());
  });
  return kDone;
}

static constexpr Command kJobCommands[] = {
    {"task list", "", "list open user tasks, oldest first", {kServer, kToken}, task_list},
    {"task complete",
     "INSTANCE STEP",
     "complete a user task",
     {kServer, kToken, kVar},
     task_complete},
    {"explain", "JOB", "say why a job waits and when it may run", {kServer, kToken}, explain},
    {"job poll",
     "TYPE...",
     "lease jobs",
     {kServer,
      kToken,
      kWorker,
      {"limit", v::number("N"), "maximum number of jobs (default 1)"},
      {"wait", v::seconds(), "how long to wait for a first job"}},
     job_poll},
    {"job complete",
     "JOB",
     "complete a leased job",
     {kServer, kToken, kWorker, kVar},
     job_complete},
    {"job fail",
     "JOB",
     "fail a leased job",
     {kServer,
      kToken,
      kWorker,
      {"error", v::text("TEXT"), "what went wrong"},
      {"retryable", v::none(), "let the job be retried"}},
     job_fail},
};

std::span<const Command> job_commands() { return kJobCommands; }

}  // namespace pawl::cli

// `pawl worker exec` runs any program as a worker. The program gets the job's variables as JSON on
// standard input. A JSON object that it prints is the result. An exit code other than 0 fails the
// job.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/remote.h"
#include "json/text.h"

namespace pawl::cli {

namespace {

// Set by the signal handler. The running job is finished and reported before the worker ends.
volatile sig_atomic_t stopping = 0;

// Sends a request and repeats it, with growing pauses, while the server does not answer. After a
// signal to stop it gives up after a few attempts.
Result<json::Value> call_with_retries(Client& client, std::string_view path,
                                      const json::Value& body, const wire::Headers& headers = {}) {
  useconds_t pause_us = 100'000;
  for (int attempts_left = 5;;) {
    auto answer = client.call("POST", path, &body, headers);
    bool temporary = !answer && (answer.error().code == Code::unavailable ||
                                 answer.error().code == Code::exhausted);
    if (!temporary || (stopping && --attempts_left <= 0)) return answer;
    usleep(pause_us);
    pause_us = std::min<useconds_t>(pause_us * 2, 900'000);
  }
}

// Reports a failed job. The idempotency key keeps a repeated report from costing a second retry.
// The key holds the number of retries left, because earlier servers keep a job's id over its
// attempts.
Result<void> report_failure(Client& client, const json::Value& job, const std::string& worker,
                            const std::string& why, bool retryable) {
  std::string id(job.string_or("id"));
  const json::Value* left = job.find("retriesRemaining");
  std::string key = fmt::format("{}/{}/{}", worker, id, left ? json::print(*left) : "");
  TRY_OK(call_with_retries(
      client, "/v1/jobs/" + wire::percent_encode(id) + "/fail",
      json::object({{"workerId", worker}, {"errorMessage", why}, {"retryable", retryable}}),
      {{"Idempotency-Key", key}}));
  return {};
}

// Runs the program for one job and completes or fails the job. Returns what to print.
Result<std::string> work(Client& client, const json::Value& job,
                         const std::vector<std::string>& command, const std::string& worker) {
  std::string id(job.string_or("id"));
  auto ran = run_job(command, job);
  if (!ran && !ran.error().is(kWorkerFailed)) return fail(std::move(ran.error()));
  std::string wrong = ran ? std::string() : ran.error().message;
  if (!wrong.empty()) {
    TRY_OK(report_failure(client, job, worker, wrong, true));
    return wrong;
  }
  auto done =
      call_with_retries(client, "/v1/jobs/" + wire::percent_encode(id) + "/complete",
                        json::object({{"workerId", worker}, {"variables", std::move(*ran)}}));
  if (done) return std::string("completed");
  bool refused = done.error().code == Code::invalid || done.error().code == Code::too_large ||
                 done.error().code == Code::unprocessable;
  if (!refused) return fail(std::move(done.error()));
  // The server would refuse the same result again, so a retry would never end.
  wrong = "the result was refused: " + done.error().message;
  TRY_OK(report_failure(client, job, worker, wrong, false));
  return wrong;
}

void stop_on_signals() {
  signal(SIGPIPE, SIG_IGN);
  struct sigaction act {};
  act.sa_handler = [](int) { stopping = 1; };
  sigaction(SIGTERM, &act, nullptr);
  sigaction(SIGINT, &act, nullptr);
}

Result<int> worker_exec(const Args& args) {
  if (args.rest.empty())
    return fail(Code::invalid, kBadUsage,
                "name the program after --: pawl worker exec --type T -- ./work.sh");
  json::Array types;
  for (const auto& type : args.all("type"))
    types.emplace_back(type);
  if (types.empty()) return fail(Code::invalid, kBadUsage, "name the job type with --type");
  TRY(auto client, client_of(args));
  std::string worker = args.get("worker", fmt::format("exec-{}", getpid()));
  int64_t left = args.number("count", INT64_MAX);
  stop_on_signals();
  json::Value poll = json::object(
      {{"workerId", worker}, {"jobTypes", std::move(types)}, {"maxJobs", 1}, {"maxWaitMs", 5000}});
  // A server that never answered is probably a mistake in the address; one that stops answering
  // later probably restarts.
  bool answered = false;
  while (!stopping && left > 0) {
    auto jobs = answered ? call_with_retries(*client, "/v1/jobs/poll", poll)
                         : client->call("POST", "/v1/jobs/poll", &poll);
    if (!jobs && stopping) break;
    if (!jobs) return fail(std::move(jobs.error()));
    answered = true;
    const json::Value* list = jobs->find("jobs");
    if (!list || !list->is_array()) continue;
    for (const json::Value& job : list->array()) {
      TRY(std::string outcome, work(*client, job, args.rest, worker));
      if (!args.has("quiet")) {
        fmt::print("{} {}\n", job.string_or("id"), outcome);
        fflush(stdout);
      }
      --left;
    }
  }
  return kDone;
}

}  // namespace

static constexpr Command kWorkerCommands[] = {
    {"worker exec",
     "-- PROGRAM [ARGUMENT...]",
     "run any program as a worker: JSON variables in, a JSON object out",
     {kServer,
      kToken,
      {"type", v::text("TYPE"), "a job type; may be given several times"},
      {"worker", v::text("ID"), "name of the worker"},
      {"count", v::number("N"), "stop after this number of jobs"}},
     worker_exec}};

std::span<const Command> worker_commands() { return kWorkerCommands; }

}  // namespace pawl::cli

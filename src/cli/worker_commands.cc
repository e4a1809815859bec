// pawl worker exec: any program as a worker. A job's variables go in on standard input as JSON;
// what the program prints as a JSON object is the result; another exit code than 0 fails the job.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/remote.h"
#include "json/text.h"

namespace pawl::cli {

namespace {

struct Ran {
  int code = -1;
  std::string out, err;
};

Result<Ran> run(const std::vector<std::string>& command, const std::string& in,
                const std::vector<std::pair<std::string, std::string>>& env) {
  int to[2], from[2], errors[2];
  if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) || pipe2(errors, O_CLOEXEC))
    return fail(Code::unavailable, "NO_PIPE", "cannot make a pipe: too many open files?");
  pid_t pid = fork();
  if (pid < 0) return fail(Code::unavailable, "NO_PROCESS", "cannot start a process");
  if (pid == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    dup2(errors[1], 2);
    for (const auto& [name, value] : env)
      setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> argv;
    for (const auto& w : command)
      argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    fmt::print(stderr, "cannot run {}\n", command[0]);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  close(errors[1]);
  Ran ran;
  size_t sent = 0;
  fcntl(to[1], F_SETFL, O_NONBLOCK);
  pollfd fds[3] = {{to[1], POLLOUT, 0}, {from[0], POLLIN, 0}, {errors[0], POLLIN, 0}};
  while (fds[1].fd >= 0 || fds[2].fd >= 0) {
    if (sent == in.size() && fds[0].fd >= 0) close(fds[0].fd), fds[0].fd = -1;
    if (::poll(fds, 3, -1) < 0) {
      if (errno == EINTR) continue;  // told to stop: what was begun is finished first
      break;
    }
    if (fds[0].fd >= 0 && fds[0].revents) {
      ssize_t n = write(fds[0].fd, in.data() + sent, in.size() - sent);
      if (n > 0)
        sent += static_cast<size_t>(n);
      else if (errno != EAGAIN)
        sent = in.size();  // it does not read: its choice
    }
    for (int i : {1, 2})
      if (fds[i].fd >= 0 && fds[i].revents) {
        char piece[65536];
        ssize_t n = read(fds[i].fd, piece, sizeof piece);
        if (n > 0)
          (i == 1 ? ran.out : ran.err).append(piece, static_cast<size_t>(n));
        else
          close(fds[i].fd), fds[i].fd = -1;
      }
  }
  for (const pollfd& open : fds)
    if (open.fd >= 0) close(open.fd);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

volatile sig_atomic_t stopping = 0;

// The call, again with growing pauses while nobody answers; when told to stop, a few times only.
Result<json::Value> patiently(Client& client, std::string_view path, const json::Value& body,
                              const wire::Headers& headers = {}) {
  useconds_t pause_us = 100'000;
  for (int last_tries = 5;;) {
    auto answer = client.call("POST", path, &body, headers);
    bool passing = !answer && (answer.error().code == Code::unavailable ||
                               answer.error().code == Code::exhausted);
    if (!passing || (stopping && --last_tries <= 0)) return answer;
    usleep(pause_us);
    pause_us = std::min<useconds_t>(pause_us * 2, 900'000);
  }
}

// A failure that arrives twice would cost two retries: it carries a key. A job keeps its id when it
// is retried; each attempt has its own number of retries left.
Result<void> report_failure(Client& client, const json::Value& job, const std::string& worker,
                            const std::string& why, bool retryable) {
  std::string id(job.string_or("id"));
  const json::Value* left = job.find("retriesRemaining");
  std::string key = fmt::format("{}/{}/{}", worker, id, left ? json::print(*left) : "");
  TRY_OK(patiently(
      client, "/v1/jobs/" + wire::percent_encode(id) + "/fail",
      json::object({{"workerId", worker}, {"errorMessage", why}, {"retryable", retryable}}),
      {{"Idempotency-Key", key}}));
  return {};
}

// Completes or fails one job by what the program said.
Result<std::string> work(Client& client, const json::Value& job,
                         const std::vector<std::string>& command, const std::string& worker) {
  std::string id(job.string_or("id"));
  const json::Value* variables = job.find("variables");
  TRY(Ran ran, run(command, variables ? json::print(*variables) + "\n" : "{}\n",
                   {{"PAWL_JOB_ID", id},
                    {"PAWL_JOB_TYPE", std::string(job.string_or("jobType"))},
                    {"PAWL_INSTANCE_ID", std::string(job.string_or("instanceId"))}}));
  json::Value result = json::Object{};
  std::string wrong;
  if (ran.code != 0) {
    wrong = fmt::format("{} ended with {}: {}", command[0], ran.code, ran.err.substr(0, 2000));
  } else if (ran.out.find_first_not_of(" \t\r\n") != std::string::npos) {
    auto parsed = json::parse(ran.out);
    if (parsed && parsed->is_object())
      result = std::move(*parsed);
    else
      wrong = fmt::format("{} printed something that is no JSON object", command[0]);
  }
  if (!wrong.empty()) {
    TRY_OK(report_failure(client, job, worker, wrong, true));
    return wrong;
  }
  auto done = patiently(client, "/v1/jobs/" + wire::percent_encode(id) + "/complete",
                        json::object({{"workerId", worker}, {"variables", std::move(result)}}));
  if (done) return std::string("completed");
  bool refused = done.error().code == Code::invalid || done.error().code == Code::too_large ||
                 done.error().code == Code::unprocessable;
  if (!refused) return fail(std::move(done.error()));
  // Said again it would be refused again, and the job would come back for ever.
  wrong = "the result was refused: " + done.error().message;
  TRY_OK(report_failure(client, job, worker, wrong, false));
  return wrong;
}

Result<int> worker_exec(const Args& args) {
  if (args.rest.empty())
    return fail(Code::invalid, kBadUsage,
                "name the program after --: pawl worker exec --type T -- ./work.sh");
  json::Array types;
  for (const auto& t : args.all("type"))
    types.emplace_back(t);
  if (types.empty()) return fail(Code::invalid, kBadUsage, "name the job type with --type");
  TRY(auto client, client_of(args));
  std::string worker = args.get("worker", fmt::format("exec-{}", getpid()));
  int64_t left = args.number("count", INT64_MAX);
  signal(SIGPIPE, SIG_IGN);
  struct sigaction act {};
  act.sa_handler = [](int) { stopping = 1; };
  sigaction(SIGTERM, &act, nullptr);
  sigaction(SIGINT, &act, nullptr);
  json::Value poll = json::object(
      {{"workerId", worker}, {"jobTypes", std::move(types)}, {"maxJobs", 1}, {"maxWaitMs", 5000}});
  bool heard = false;  // a server that was never there is a mistake; one that is gone comes back
  while (!stopping && left > 0) {
    auto jobs = heard ? patiently(*client, "/v1/jobs/poll", poll)
                      : client->call("POST", "/v1/jobs/poll", &poll);
    if (!jobs && stopping) break;
    if (!jobs) return fail(std::move(jobs.error()));
    heard = true;
    const json::Value* list = jobs->find("jobs");
    if (!list || !list->is_array()) continue;
    for (const json::Value& job : list->array()) {
      TRY(std::string said, work(*client, job, args.rest, worker));
      if (!args.has("quiet")) fmt::print("{} {}\n", job.string_or("id"), said), fflush(stdout);
      --left;
    }
  }
  return kDone;
}

}  // namespace

static constexpr Command kWorkerCommands[] = {
    {"worker exec",
     "-- PROGRAM [ARGUMENT...]",
     "run any program as a worker: variables in as JSON, a JSON object out",
     {kServer,
      kToken,
      {"type", v::text("TYPE"), "a job type; may be given several times"},
      {"worker", v::text("ID"), "the worker's name"},
      {"count", v::number("N"), "stop after so many jobs"}},
     worker_exec}};

std::span<const Command> worker_commands() { return kWorkerCommands; }

}  // namespace pawl::cli

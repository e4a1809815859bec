#include "pawl/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "client/link.h"
#include "client/random.h"
#include "client/stop_flag.h"

namespace pawl {

using client::Desk;
using client::Ended;
using client::LinkEnd;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFirstPauseMs = 100, kMaxPauseMs = 2'000;
// How long to poll over HTTP before the stream is tried again.
constexpr int kPollTurnMs = 15'000;

std::string own_name() {
  char host[256] = "worker";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}-{}-{}", host, getpid(), client::fresh_key().substr(0, 6));
}

}  // namespace

struct Worker::Parts {
  WorkerOptions options;
  std::map<std::string, Handler> handlers;
  client::StopFlag stop;

  void say(const std::string& line) const {
    if (options.log)
      options.log(line);
    else
      fmt::print(stderr, "pawl worker {}: {}\n", options.id, line);
  }

  Outcome attempt(const Job& job) const {
    auto handler = handlers.find(job.type);
    if (handler == handlers.end()) return fail_for_good("no handler registered for " + job.type);
    try {
      return handler->second(job);
    } catch (const std::exception& e) {
      return fail(e.what());
    }
  }

  void work(Desk& desk) const {
    while (auto job = desk.take()) {
      Outcome outcome = attempt(*job);
      if (!outcome)
        say(fmt::format("job {} ({}) failed{}: {}", job->id, job->type,
                        outcome.error().retryable ? "" : " for good", outcome.error().message));
      desk.done({job->id, job->retries_left, std::move(outcome)});
    }
  }

  // One link after the other until the desk is drained, the server says no or, at the end, patience
  // runs out.
  Reply<void> keep_linked(Desk& desk) {
    client::LinkOptions link{.worker_id = options.id,
                             .job_types = {},
                             .lease_seconds = options.lease_seconds,
                             .token = options.token};
    for (const auto& [type, handler] : handlers)
      link.job_types.push_back(type);
    Client http(options.http, {.token = options.token, .patience_ms = 0});
    client::PollLink polling(http, link);
    std::optional<client::StreamLink> stream;
    if (!options.grpc.empty()) stream.emplace(options.grpc, link);
    std::optional<Clock::time_point> give_up;
    for (int pause = kFirstPauseMs;;) {
      LinkEnd end{Ended::unreachable, {}};
      if (stream) end = stream->run(desk);
      if (end.how == Ended::unreachable)
        end = polling.run(desk, stream ? kPollTurnMs : 10 * kPollTurnMs);
      if (end.how == Ended::drained || (desk.draining() && desk.idle())) return {};
      if (end.how == Ended::refused) return std::unexpected(std::move(end.why));
      pause = end.how == Ended::broken ? kFirstPauseMs : std::min(pause * 2, kMaxPauseMs);
      if (end.how == Ended::unreachable || !end.why.message.empty())
        say(fmt::format("no link to the server, trying again: {}", end.why.message));
      if (desk.draining()) {
        if (!give_up) give_up = Clock::now() + std::chrono::milliseconds(options.patience_ms);
        if (Clock::now() > *give_up) return std::unexpected(std::move(end.why));
        std::this_thread::sleep_for(std::chrono::milliseconds(client::jittered(pause)));
      } else {
        stop.wait(client::jittered(pause));
      }
    }
  }
};

Worker::Worker(WorkerOptions options)
    : parts_(new Parts{.options = std::move(options), .handlers = {}}) {
  WorkerOptions& o = parts_->options;
  if (o.id.empty()) o.id = own_name();
  o.concurrency = std::max(1, o.concurrency);
  o.credit = std::max(o.credit, o.concurrency);
}

Worker::~Worker() = default;

void Worker::on(std::string type, Handler handler) {
  parts_->handlers.insert_or_assign(std::move(type), std::move(handler));
}

void Worker::stop() { parts_->stop.raise(); }

Reply<void> Worker::run() {
  Parts& p = *parts_;
  if (p.handlers.empty())
    return std::unexpected(Refusal{
        .status = 400,
        .code = "no-handlers",
        .message = "a worker without handlers has nothing to do: name one with on(type, handler)"});
  Desk desk(static_cast<size_t>(p.options.credit));
  std::vector<std::jthread> hands;
  for (int i = 0; i < p.options.concurrency; ++i)
    hands.emplace_back([&] { p.work(desk); });
  // The flag is watched on a thread of its own: stop() may only raise it.
  std::jthread watcher([&] {
    p.stop.wait(-1);
    desk.drain();
  });
  Reply<void> end = p.keep_linked(desk);
  p.stop.raise();
  desk.close();
  return end;
}

}  // namespace pawl

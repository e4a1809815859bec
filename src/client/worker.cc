#include "pawl/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "client/random.h"
#include "client/stop_flag.h"
#include "client/transport.h"

namespace pawl {

using client::Ended;
using client::JobBuffer;
using client::TransportEnd;

namespace {

using Clock = std::chrono::steady_clock;

// Pauses between two connections. A connection that was made and broke starts at the first again.
constexpr int kFirstPauseMs = 100, kMaxPauseMs = 2'000;
// Time of polling over HTTP before the stream is tried again.
constexpr int kPollMs = 15'000;

// Host and process for people; the random part keeps two workers of one process apart.
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

  // An exception that is not a std::exception ends the process.
  Outcome attempt(const Job& job) const {
    auto handler = handlers.find(job.type);
    if (handler == handlers.end()) return fail_for_good("no handler registered for " + job.type);
    try {
      return handler->second(job);
    } catch (const std::exception& e) {
      return fail(e.what());
    }
  }

  // One of the handler threads: runs jobs until the buffer is closed.
  void work(JobBuffer& buffer) const {
    while (auto job = buffer.take()) {
      Outcome outcome = attempt(*job);
      if (!outcome)
        say(fmt::format("job {} ({}) failed{}: {}", job->id, job->type,
                        outcome.error().retryable ? "" : " for good", outcome.error().message));
      buffer.done({job->id, job->retries_left, std::move(outcome)});
    }
  }

  // Opens one transport after the other until the buffer is drained or the server refuses the
  // worker. While draining, it gives up after `patience_ms`.
  Result<void> keep_connected(JobBuffer& buffer) {
    client::TransportOptions transport{.worker_id = options.id,
                                       .job_types = {},
                                       .lease_seconds = options.lease_seconds,
                                       .token = options.token};
    for (const auto& [type, handler] : handlers)
      transport.job_types.push_back(type);
    // No patience: this loop repeats failed requests itself.
    Client http(options.http, {.token = options.token, .patience_ms = 0});
    client::PollTransport polling(http, transport);
    std::optional<client::StreamTransport> stream;
    if (!options.grpc.empty()) stream.emplace(options.grpc, transport);
    std::optional<Clock::time_point> give_up;
    for (int pause = kFirstPauseMs;;) {
      TransportEnd end{Ended::unreachable, {}};
      if (stream) end = stream->run(buffer);
      // Without gRPC there is no stream to go back to, so polling runs longer at a time.
      if (end.how == Ended::unreachable) end = polling.run(buffer, stream ? kPollMs : 10 * kPollMs);
      if (end.how == Ended::drained || (buffer.draining() && buffer.idle())) return {};
      if (end.how == Ended::refused) return std::unexpected(std::move(end.why));
      pause = end.how == Ended::broken ? kFirstPauseMs : std::min(pause * 2, kMaxPauseMs);
      if (end.how == Ended::unreachable || !end.why.message.empty())
        say(fmt::format("no connection to the server, trying again: {}", end.why.message));
      if (buffer.draining()) {
        if (!give_up) give_up = Clock::now() + std::chrono::milliseconds(options.patience_ms);
        if (Clock::now() > *give_up) return std::unexpected(std::move(end.why));
        std::this_thread::sleep_for(std::chrono::milliseconds(client::jittered(pause)));
      } else {
        // Ends early when the worker is told to stop.
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
  // Fewer jobs than threads would leave threads without work.
  o.credit = std::max(o.credit, o.concurrency);
}

Worker::~Worker() = default;

void Worker::on(std::string type, Handler handler) {
  parts_->handlers.insert_or_assign(std::move(type), std::move(handler));
}

void Worker::stop() { parts_->stop.raise(); }

// The buffer outlives every connection, so results survive a reconnect. It is closed last: handler
// threads end then.
Result<void> Worker::run() {
  Parts& p = *parts_;
  if (p.handlers.empty())
    return pawl::fail(
        Code::invalid, "no-handlers",
        "a worker without handlers has nothing to do: name one with on(type, handler)");
  JobBuffer buffer(static_cast<size_t>(p.options.credit));
  std::vector<std::jthread> threads;
  for (int i = 0; i < p.options.concurrency; ++i)
    threads.emplace_back([&] { p.work(buffer); });
  // A thread waits for the flag, since stop() may be called by a signal handler and only raises it.
  std::jthread watcher([&] {
    p.stop.wait(-1);
    buffer.drain();
  });
  Result<void> end = p.keep_connected(buffer);
  // Lets the watcher end when the server has refused the worker; jthreads are joined on return.
  p.stop.raise();
  buffer.close();
  return end;
}

}  // namespace pawl

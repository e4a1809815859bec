#pragma once
// A worker does the jobs of service tasks: it names the job types it knows, gets jobs pushed over
// one gRPC stream within its credit, and sends back what its handlers return. Where gRPC is not
// reachable it polls over HTTP instead.
//
//   pawl::Worker worker;
//   worker.on("charge", [](const pawl::Worker::Job& job) -> pawl::Worker::Outcome {
//     return R"({"chargeId": "ch-1"})";
//   });
//   worker.run();  // until stop()
//
// A job is lent, not given: if this process dies, it is offered again. Handlers therefore run at
// least once, and what they do outside should bear a repetition; job.id is the same every time.

#include "pawl/client.h"

namespace pawl {

struct WorkerOptions {
  std::string http = "127.0.0.1:8080";
  // https:// before either address for TLS. gRPC takes other authorities from
  // GRPC_DEFAULT_SSL_ROOTS_FILE_PATH.
  std::string grpc = "127.0.0.1:9090";  // empty: poll over HTTP only
  Token token{};
  std::string id{};        // empty: made from the host and process
  int concurrency = 16;    // handlers at once, each on a thread of its own
  int credit = 0;          // jobs held at once, running or waiting here; 0: as many as concurrency
  int lease_seconds = 30;  // longer than the slowest handler takes, waiting included
  int patience_ms = 60'000;  // how long results are kept at the end while the server is away
  // Gets a line whenever something is worth knowing. Empty: lines go to standard error.
  std::function<void(std::string_view)> log{};
};

class Worker {
 public:
  struct Job {
    std::string id, type, instance_id, step_id;
    int retries_left = 0;
    std::string variables;  // a JSON object
  };
  struct Failure {
    std::string message;
    bool retryable = true;  // false: the step fails now, whatever retries are left
  };
  // A JSON object that is merged into the instance's variables (empty: nothing), or a failure. An
  // exception that a handler throws is a retryable failure.
  using Outcome = std::expected<std::string, Failure>;
  using Handler = std::function<Outcome(const Job&)>;

  explicit Worker(WorkerOptions options = {});
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Before run(). One handler per type, called from several threads.
  void on(std::string type, Handler handler);
  // Works until stop(), then finishes what runs, hands back what does not, and returns. Joins again
  // by itself when the server restarts. Returns early only when the server refuses this worker.
  Reply<void> run();
  // Begins to drain. Safe from any thread and from a signal handler.
  void stop();

  static std::unexpected<Failure> fail(std::string message) {
    return std::unexpected(Failure{std::move(message), true});
  }
  static std::unexpected<Failure> fail_for_good(std::string message) {
    return std::unexpected(Failure{std::move(message), false});
  }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pawl

#pragma once
// A worker runs the jobs of service tasks. It names the job types that it handles, receives jobs
// over one gRPC stream, and sends back what its handlers return. When gRPC is not reachable, it
// polls over HTTP instead.
//
//   pawl::Worker worker;
//   worker.on("charge", [](const pawl::Worker::Job& job) -> pawl::Worker::Outcome {
//     return R"({"chargeId": "ch-1"})";
//   });
//   worker.run();  // until stop()
//
// A job is leased. When this process dies, the server offers the job to another worker. Handlers
// therefore run at least once, and what they do outside Pawl must tolerate a repetition; job.id is
// the same each time.

#include "pawl/client.h"

namespace pawl {

struct WorkerOptions {
  std::string http = "127.0.0.1:8080";
  // Either address begins with https:// for TLS. gRPC reads certificate authorities from the file
  // that the environment variable GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names.
  std::string grpc = "127.0.0.1:9090";  // empty: poll over HTTP only
  Token token{};
  std::string id{};          // when empty, made from the host and the process
  int concurrency = 16;      // handlers that run at the same time, each on its own thread
  int credit = 0;            // maximum number of jobs held, running or waiting; 0: `concurrency`
  int lease_seconds = 30;    // must exceed the time of the slowest handler, waiting included
  int patience_ms = 60'000;  // after stop(): how long to keep trying to deliver results
  // Receives log lines. When empty, they go to standard error.
  std::function<void(std::string_view)> log{};
};

class Worker {
 public:
  struct Job {
    std::string id, type, instance_id, step_id;
    int retries_left = 0;
    std::string variables;  // a JSON object
  };
  // A JSON object that is merged into the variables of the instance (empty: none), or why the job
  // failed: see fail() and fail_for_good(). An exception that a handler throws is a retryable
  // failure.
  using Outcome = Result<std::string>;
  using Handler = std::function<Outcome(const Job&)>;

  explicit Worker(WorkerOptions options = {});
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Call before run(). There is one handler per type; it is called from several threads.
  void on(std::string type, Handler handler);
  // Runs until stop(), then finishes the running jobs, returns the others to the server, and
  // returns. Reconnects when the server restarts. Returns early only when the server refuses this
  // worker.
  Result<void> run();
  // Begins to stop. Safe from any thread and from a signal handler.
  void stop();

  // The attempt failed; the job is tried again while it has retries left.
  static std::unexpected<Error> fail(std::string message) {
    return std::unexpected(Error{Code::internal, "JOB_FAILED", std::move(message), {}, true});
  }
  // The job failed; the step fails now, whatever retries are left.
  static std::unexpected<Error> fail_for_good(std::string message) {
    return std::unexpected(Error{Code::internal, "JOB_FAILED", std::move(message), {}, false});
  }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pawl

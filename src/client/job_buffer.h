#pragma once
// JobBuffer stands between the transport that talks to the server and the threads that run the
// handlers. It holds jobs until a handler takes them, and results until the server has confirmed
// them. It outlives transports: when a connection breaks, unconfirmed results are kept.
// Thread-safe.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pawl/worker.h"

namespace pawl::client {

// The outcome of a job: the handler's return value.
struct JobResult {
  std::string job_id;
  int retries_left = 0;
  Worker::Outcome outcome;
};

class JobBuffer {
 public:
  explicit JobBuffer(size_t max) : max_(max) {}

  // For the transport.
  // Returns false when the job is not accepted: the buffer is draining, or holds this attempt
  // already. A restarted server offers jobs again that are still running here.
  bool put(Worker::Job job);
  size_t room() const;                                 // how many more jobs are accepted
  size_t wait_for_room(std::stop_token stop, int ms);  // waits at most `ms` until there is room
  // Waits for results to send and returns at most `max`. Returns none only when stopped.
  std::vector<JobResult> results(std::stop_token stop, size_t max);
  void confirm(const std::string& job_id);
  // The server refused a result. A refused completion is replaced by a failure without retries; a
  // refused failure is dropped.
  void refuse(const std::string& job_id, const std::string& reason);
  // The connection broke. Completions that were sent but not confirmed are sent again, which is
  // harmless. Failures are not, since a failure that arrives twice uses up two retries; at worst,
  // the job runs again.
  void connection_lost();

  // For the handlers.
  std::optional<Worker::Job> take();  // waits for a job; empty when closed
  void done(JobResult result);

  // For shutdown.
  // Accepts no more jobs. Jobs that no handler has taken are dropped when the transport returns
  // them to the server by itself.
  void drain();
  void set_returns_jobs(bool yes);  // whether the current transport does
  bool draining() const;
  bool idle() const;  // holds neither jobs nor results
  // Waits until the buffer is drained and idle, or stopped, at most `ms`.
  void wait_while_working(std::stop_token stop, int ms);
  void close();  // ends take()

 private:
  // A retried job keeps its id, so an attempt is named by the id and the retries that are left.
  static std::string attempt(const std::string& job_id, int retries_left) {
    return job_id + "/" + std::to_string(retries_left);
  }
  size_t room_left() const { return max_ > held_.size() ? max_ - held_.size() : 0; }
  void release(const JobResult& result);
  void drop_waiting();

  const size_t max_;
  mutable std::mutex mutex_;
  std::condition_variable job_added_;
  std::condition_variable_any result_added_, released_;
  std::unordered_set<std::string> held_;  // attempts, from put() until their result is confirmed
  std::deque<Worker::Job> waiting_;
  std::deque<JobResult> unsent_;
  std::unordered_map<std::string, JobResult> sent_;  // by job id
  bool draining_ = false, returns_jobs_ = false, closed_ = false;
};

}  // namespace pawl::client

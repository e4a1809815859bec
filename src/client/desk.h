#pragma once
// The desk stands between a link to the server and the handlers: jobs wait on it to be done,
// results wait on it until the server has confirmed them. It outlives links; a link that broke
// leaves nothing on the way.

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

// What a handler said about a job.
struct Done {
  std::string job_id;
  int retries_left = 0;
  Worker::Outcome outcome;
};

class Desk {
 public:
  explicit Desk(size_t max) : max_(max) {}

  // The link's side.
  // False when it was not taken: this attempt is here already (a restarted server offers again what
  // is still being done), or no more are taken.
  bool put(Worker::Job job);
  size_t room() const;                                 // how many more may be put
  size_t wait_for_room(std::stop_token stop, int ms);  // the same, at most `ms` later
  // Results to send, at most `most`. Empty only when stopped.
  std::vector<Done> results(std::stop_token stop, size_t max);
  void confirm(const std::string& job_id);
  // The server did not like a result: it becomes a failure for good; a failure is given up.
  void refuse(const std::string& job_id, const std::string& reason);
  // The link broke: sent completions are sent again, which the server bears. Sent failures are not,
  // since one that arrives twice costs two retries: at worst the job is done again.
  void lost();

  // The handlers' side.
  std::optional<Worker::Job> take();  // empty when closed
  void done(Done done);

  // The end.
  // Takes no more jobs. Those that nobody has begun are forgotten if the link gives them back by
  // itself.
  void drain();
  void link_gives_back(bool yes);
  bool draining() const;
  bool idle() const;  // no job, no result
  // Until drained and idle, stopped, or `ms` later.
  void wait_while_working(std::stop_token stop, int ms);
  void close();  // take() ends

 private:
  static std::string attempt(const std::string& job_id, int retries_left) {
    return job_id + "/" + std::to_string(retries_left);
  }
  size_t room_left() const { return max_ > here_.size() ? max_ - here_.size() : 0; }
  void gone(const Done& done);
  void forget_waiting();

  const size_t max_;
  mutable std::mutex mutex_;
  std::condition_variable job_came_;
  std::condition_variable_any result_came_, left_;
  // A job keeps its id when it is retried: an attempt is the id with the retries that are left.
  std::unordered_set<std::string> here_;
  std::deque<Worker::Job> waiting_;
  std::deque<Done> unsent_;
  std::unordered_map<std::string, Done> sent_;  // by job id
  bool draining_ = false, gives_back_ = false, closed_ = false;
};

}  // namespace pawl::client

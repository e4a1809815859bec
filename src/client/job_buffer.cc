#include "client/job_buffer.h"

#include <chrono>

namespace pawl::client {

using std::chrono::milliseconds;

// The limit is not checked here: the transport asks for room() before it asks for jobs.
bool JobBuffer::put(Worker::Job job) {
  std::lock_guard lock(mutex_);
  if (draining_ || !held_.insert(attempt(job.id, job.retries_left)).second) return false;
  waiting_.push_back(std::move(job));
  job_added_.notify_one();
  return true;
}

size_t JobBuffer::room() const {
  std::lock_guard lock(mutex_);
  return room_left();
}

size_t JobBuffer::wait_for_room(std::stop_token stop, int ms) {
  std::unique_lock lock(mutex_);
  released_.wait_for(lock, stop, milliseconds(ms), [&] { return draining_ || room_left() > 0; });
  return room_left();
}

// A result that is handed out is kept in sent_ until the server has confirmed or refused it.
std::vector<JobResult> JobBuffer::results(std::stop_token stop, size_t max) {
  std::unique_lock lock(mutex_);
  std::vector<JobResult> out;
  if (!result_added_.wait(lock, stop, [&] { return !unsent_.empty(); })) return out;
  while (!unsent_.empty() && out.size() < max) {
    out.push_back(unsent_.front());
    sent_.insert_or_assign(unsent_.front().job_id, std::move(unsent_.front()));
    unsent_.pop_front();
  }
  return out;
}

void JobBuffer::release(const JobResult& done) {
  held_.erase(attempt(done.job_id, done.retries_left));
  released_.notify_all();
}

void JobBuffer::confirm(const std::string& job_id) {
  std::lock_guard lock(mutex_);
  auto sent = sent_.extract(job_id);
  if (sent) release(sent.mapped());
}

void JobBuffer::refuse(const std::string& job_id, const std::string& reason) {
  std::lock_guard lock(mutex_);
  auto sent = sent_.extract(job_id);
  if (!sent) return;
  // A failure was refused, and there is nothing else to report in its place.
  if (!sent.mapped().outcome) return release(sent.mapped());
  unsent_.push_back({job_id, sent.mapped().retries_left,
                     Worker::fail_for_good("the server refused the result: " + reason)});
  result_added_.notify_all();
}

void JobBuffer::connection_lost() {
  std::lock_guard lock(mutex_);
  for (auto& [id, done] : sent_) {
    if (done.outcome)
      // In front, because these results are older than those that were never sent.
      unsent_.push_front(std::move(done));
    else
      release(done);
  }
  sent_.clear();
  result_added_.notify_all();
}

// After close() the waiting jobs are gone, so every handler thread gets an empty answer and ends.
std::optional<Worker::Job> JobBuffer::take() {
  std::unique_lock lock(mutex_);
  job_added_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
  if (waiting_.empty()) return std::nullopt;
  Worker::Job job = std::move(waiting_.front());
  waiting_.pop_front();
  return job;
}

void JobBuffer::done(JobResult result) {
  std::lock_guard lock(mutex_);
  unsent_.push_back(std::move(result));
  result_added_.notify_all();
}

// The server has these jobs back when the stream ends, so they need no result.
void JobBuffer::drop_waiting() {
  for (const Worker::Job& job : waiting_)
    held_.erase(attempt(job.id, job.retries_left));
  waiting_.clear();
}

void JobBuffer::drain() {
  std::lock_guard lock(mutex_);
  draining_ = true;
  if (returns_jobs_) drop_waiting();
  released_.notify_all();
}

void JobBuffer::set_returns_jobs(bool yes) {
  std::lock_guard lock(mutex_);
  returns_jobs_ = yes;
  if (draining_ && returns_jobs_) drop_waiting();
  released_.notify_all();
}

bool JobBuffer::draining() const {
  std::lock_guard lock(mutex_);
  return draining_;
}

// held_ covers jobs that wait, jobs that run, and results that are not confirmed.
bool JobBuffer::idle() const {
  std::lock_guard lock(mutex_);
  return held_.empty();
}

void JobBuffer::wait_while_working(std::stop_token stop, int ms) {
  std::unique_lock lock(mutex_);
  released_.wait_for(lock, stop, milliseconds(ms), [&] { return draining_ && held_.empty(); });
}

void JobBuffer::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  waiting_.clear();
  job_added_.notify_all();
}

}  // namespace pawl::client

#include "client/desk.h"

#include <chrono>

namespace pawl::client {

using std::chrono::milliseconds;

bool Desk::put(Worker::Job job) {
  std::lock_guard lock(mutex_);
  if (draining_ || !here_.insert(attempt(job.id, job.retries_left)).second) return false;
  waiting_.push_back(std::move(job));
  job_came_.notify_one();
  return true;
}

size_t Desk::room() const {
  std::lock_guard lock(mutex_);
  return room_left();
}

size_t Desk::wait_for_room(std::stop_token stop, int ms) {
  std::unique_lock lock(mutex_);
  left_.wait_for(lock, stop, milliseconds(ms), [&] { return draining_ || room_left() > 0; });
  return room_left();
}

std::vector<Done> Desk::results(std::stop_token stop, size_t max) {
  std::unique_lock lock(mutex_);
  std::vector<Done> out;
  if (!result_came_.wait(lock, stop, [&] { return !unsent_.empty(); })) return out;
  while (!unsent_.empty() && out.size() < max) {
    out.push_back(unsent_.front());
    sent_.insert_or_assign(unsent_.front().job_id, std::move(unsent_.front()));
    unsent_.pop_front();
  }
  return out;
}

void Desk::gone(const Done& done) {
  here_.erase(attempt(done.job_id, done.retries_left));
  left_.notify_all();
}

void Desk::confirm(const std::string& job_id) {
  std::lock_guard lock(mutex_);
  auto sent = sent_.extract(job_id);
  if (sent) gone(sent.mapped());
}

void Desk::refuse(const std::string& job_id, const std::string& reason) {
  std::lock_guard lock(mutex_);
  auto sent = sent_.extract(job_id);
  if (!sent) return;
  if (!sent.mapped().outcome) return gone(sent.mapped());
  unsent_.push_back({job_id, sent.mapped().retries_left,
                     Worker::fail_for_good("the result was refused: " + reason)});
  result_came_.notify_all();
}

void Desk::lost() {
  std::lock_guard lock(mutex_);
  for (auto& [id, done] : sent_) {
    if (done.outcome)
      unsent_.push_front(std::move(done));
    else
      gone(done);
  }
  sent_.clear();
  result_came_.notify_all();
}

std::optional<Worker::Job> Desk::take() {
  std::unique_lock lock(mutex_);
  job_came_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
  if (waiting_.empty()) return std::nullopt;
  Worker::Job job = std::move(waiting_.front());
  waiting_.pop_front();
  return job;
}

void Desk::done(Done done) {
  std::lock_guard lock(mutex_);
  unsent_.push_back(std::move(done));
  result_came_.notify_all();
}

void Desk::forget_waiting() {
  for (const Worker::Job& job : waiting_)
    here_.erase(attempt(job.id, job.retries_left));
  waiting_.clear();
}

void Desk::drain() {
  std::lock_guard lock(mutex_);
  draining_ = true;
  if (gives_back_) forget_waiting();
  left_.notify_all();
}

void Desk::link_gives_back(bool yes) {
  std::lock_guard lock(mutex_);
  gives_back_ = yes;
  if (draining_ && gives_back_) forget_waiting();
  left_.notify_all();
}

bool Desk::draining() const {
  std::lock_guard lock(mutex_);
  return draining_;
}

bool Desk::idle() const {
  std::lock_guard lock(mutex_);
  return here_.empty();
}

void Desk::wait_while_working(std::stop_token stop, int ms) {
  std::unique_lock lock(mutex_);
  left_.wait_for(lock, stop, milliseconds(ms), [&] { return draining_ && here_.empty(); });
}

void Desk::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  waiting_.clear();
  job_came_.notify_all();
}

}  // namespace pawl::client

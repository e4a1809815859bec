#include "faces/processes/grpc/work_stream.h"

#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "faces/processes/grpc/convert.h"
#include "faces/processes/grpc/workflow_engine_service.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/limits.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

using pawl::v1::FromWorker;
using pawl::v1::ToWorker;

// Credit that a worker may hold; more would only fill its memory.
constexpr int64_t kMaxCredit = 10'000;
// Variables in one message of jobs; what is more goes with the next, so that no message outgrows
// what a client takes.
constexpr size_t kMessageBytes = 1024 * 1024;
// Credit that is worth a poll while more is about to come.
constexpr int64_t kEnoughCredit = 256;

class Stream final : public grpc::ServerBidiReactor<FromWorker, ToWorker>,
                     public std::enable_shared_from_this<Stream> {
 public:
  Stream(Verbs& verbs, Caller caller) : verbs_(verbs), caller_(std::move(caller)) {}

  void begin(std::shared_ptr<Stream> self) {
    self_ = std::move(self);
    StartRead(&in_);
  }
  void refuse(std::shared_ptr<Stream> self, const Error& error) {
    self_ = std::move(self);
    over_ = true;
    Finish(status_of(error));
  }

  void OnReadDone(bool ok) override {
    std::unique_lock lock(mutex_);
    if (!ok) {
      half_closed_ = true;
      return end_if_idle(lock);
    }
    FromWorker message = std::move(in_);
    in_.Clear();
    lock.unlock();
    auto taken = take(message);
    if (!taken) return stop(status_of(taken.error()));
    lock.lock();
    if (!over_) StartRead(&in_);
  }

  void OnWriteDone(bool ok) override {
    std::unique_lock lock(mutex_);
    writing_ = false;
    if (!ok) {
      lock.unlock();
      return stop(grpc::Status::CANCELLED);
    }
    write_next();
    end_if_idle(lock);
  }

  void OnCancel() override { stop(grpc::Status::CANCELLED); }
  void OnDone() override { self_.reset(); }

 private:
  Result<void> take(const FromWorker& m) {
    if (!greeted_ && !m.has_hello())
      return fail(Code::invalid, "NO_HELLO", "the first message must be a hello");
    if (m.has_hello()) return greet(m.hello());
    if (m.has_credit()) give_credit(m.credit().more());
    if (m.has_result()) settle(m.result());
    if (m.has_results()) {
      BatchScope run_batch;
      for (const pawl::v1::Result& r : m.results().results())
        settle(r);
    }
    return {};
  }

  Result<void> greet(const pawl::v1::Hello& hello) {
    if (greeted_) return fail(Code::invalid, "TWO_HELLOS", "a stream begins with one hello");
    if (hello.worker_id().empty()) return fail(Code::invalid, "NO_WORKER", "worker_id is required");
    if (hello.job_types().empty())
      return fail(Code::invalid, "NO_JOB_TYPES", "job_types must name at least one job type");
    worker_ = hello.worker_id();
    types_.assign(hello.job_types().begin(), hello.job_types().end());
    lease_ =
        (hello.lease_seconds() <= 0 ? 30 : std::min(hello.lease_seconds(), 24 * 3600)) * kSecond;
    greeted_ = true;
    give_credit(hello.credit());
    return {};
  }

  void give_credit(int64_t more) {
    {
      std::lock_guard lock(mutex_);
      credit_ = std::clamp<int64_t>(credit_ + more, 0, kMaxCredit);
    }
    ask_for_jobs();
  }

  // One poll at a time, for as many jobs as there is credit.
  void ask_for_jobs() {
    Poll poll;
    {
      std::lock_guard lock(mutex_);
      if (over_ || polling_ || half_closed_ || credit_ <= 0) return;
      polling_ = true;
      asked_ = verbs_.now();
      poll = {.tenant = caller_.tenant,
              .queues = types_,
              .worker = worker_,
              .limit = std::min<size_t>(static_cast<size_t>(credit_), kMaxJobs),
              .lease = lease_,
              .wait = kMaxWaitMs * kMillisecond};
    }
    auto self = shared_from_this();
    uint64_t id = verbs_.poll(std::move(poll),
                              [self](std::vector<PolledJob> jobs) { self->push(std::move(jobs)); });
    std::unique_lock lock(mutex_);
    poll_id_ = id;
    if (over_ || half_closed_) {
      lock.unlock();
      verbs_.cancel_poll(id);
    }
  }

  void push(std::vector<PolledJob> jobs) {
    {
      std::unique_lock lock(mutex_);
      polling_ = false;
      if (over_ || half_closed_) {
        lock.unlock();
        for (const PolledJob& p : jobs)
          verbs_.release(p.effect_id);
        lock.lock();
        return end_if_idle(lock);
      }
      credit_ -= static_cast<int64_t>(jobs.size());
      for (PolledJob& p : jobs) {
        pawl::v1::WorkerJob* job = jobs_out_.add_jobs();
        job->set_id(p.job.id);
        job->set_job_type(p.type);
        job->set_instance_id(p.job.instance_id);
        job->set_step_id(p.job.step_id);
        job->set_step_execution_id(p.job.execution_id);
        job->set_retries_remaining(static_cast<int32_t>(p.job.retries_left));
        job->set_variables(std::move(p.job.variables));
        job->set_lock_expires_unix_ms(p.until / kMillisecond);
        ++unanswered_[p.job.id];
        leased_.insert_or_assign(p.job.id, Lease{std::move(p.effect_id), p.until});
      }
      write_next();
      // Nothing, long before the wait is over: the server is stopping. Asking on would never end.
      if (jobs.empty() && verbs_.now() - asked_ < kMaxWaitMs * kMillisecond / 2) return;
    }
    ask_for_jobs();
  }

  // A result gives back the credit of its job: once for each time that the job was pushed, whatever
  // became of it meanwhile, and once for a job that an earlier stream of the worker held, because
  // its hello left that out: if there is such a job. One that is only said again gives nothing.
  enum class Credit : uint8_t { none, if_known, sure };

  // With the lock held.
  Credit credit_of(const std::string& job) {
    auto pushed = unanswered_.find(job);
    const bool here = pushed != unanswered_.end();
    if (!here && answered_.contains(job)) return Credit::none;
    if (here && --pushed->second > 0) return Credit::sure;
    if (here) unanswered_.erase(pushed);
    if (answered_.size() >= static_cast<size_t>(kMaxCredit)) answered_.clear();
    answered_.insert(job);
    return here ? Credit::sure : Credit::if_known;
  }

  void settle(const pawl::v1::Result& r) {
    Credit credit;
    {
      std::lock_guard lock(mutex_);
      ++settling_;
      leased_.erase(r.job_id());
      credit = credit_of(r.job_id());
    }
    auto self = shared_from_this();
    std::string id = r.job_id();
    Done done = [self, id, credit](Result<Bytes> outcome) { self->settled(id, outcome, credit); };
    if (!r.error_message().empty())
      return verbs_.fail_job({caller_}, {id, worker_, r.error_message(), r.retryable()},
                             std::move(done));
    VariablesPtr variables = make_variables({});
    if (!r.variables().empty()) {
      auto parsed = json::parse(r.variables());
      if (!parsed || !parsed->is_object())
        return done(fail(Code::invalid, "BAD_VARIABLES", "variables must be a JSON object"));
      variables = make_variables(std::move(parsed->object()));
    }
    verbs_.complete({caller_}, {.id = id, .worker = worker_, .variables = std::move(variables)},
                    std::move(done));
  }

  void settled(const std::string& id, const Result<Bytes>& outcome, Credit credit) {
    {
      std::unique_lock lock(mutex_);
      --settling_;
      const bool never_was = !outcome && outcome.error().code == Code::not_found;
      if (credit == Credit::sure || (credit == Credit::if_known && !never_was))
        credit_ = std::min(credit_ + 1, kMaxCredit);
      if (over_) return;
      pawl::v1::Settled::One* one = settled_out_.add_results();
      one->set_job_id(id);
      if (!outcome) {
        one->set_error(std::string(error_word(outcome.error().code)));
        one->set_reason(outcome.error().message);
      }
      write_next();
      // Results come many at once: one poll for all of their credit, not one for each.
      if (settling_ > 0 && credit_ < kEnoughCredit) return;
    }
    ask_for_jobs();
  }

  // With the lock held. Whatever has gathered goes out as one message.
  void write_next() {
    if (writing_ || over_) return;
    out_.Clear();
    if (settled_out_.results_size())
      out_.mutable_settled()->Swap(&settled_out_);
    else if (jobs_out_.jobs_size())
      take_jobs_out();
    else
      return;
    writing_ = true;
    StartWrite(&out_);
  }

  // With the lock held. At least one job, and as many more as fit the message.
  void take_jobs_out() {
    auto& waiting = *jobs_out_.mutable_jobs();
    int n = 1;
    for (size_t bytes = waiting[0].variables().size();
         n < waiting.size() && bytes + waiting[n].variables().size() <= kMessageBytes; ++n)
      bytes += waiting[n].variables().size();
    if (n == waiting.size()) return out_.mutable_jobs()->Swap(&jobs_out_);
    std::vector<pawl::v1::WorkerJob*> taken(static_cast<size_t>(n));
    waiting.ExtractSubrange(0, n, taken.data());
    for (pawl::v1::WorkerJob* job : taken)
      out_.mutable_jobs()->mutable_jobs()->AddAllocated(job);
  }

  void end_if_idle(std::unique_lock<std::mutex>& lock) {
    if (!half_closed_ || over_) return;
    if (polling_) {
      uint64_t id = poll_id_;
      polling_ = false;  // a cancelled poll is not heard of again
      lock.unlock();
      verbs_.cancel_poll(id);
      lock.lock();
    }
    if (over_ || writing_ || settling_ || settled_out_.results_size()) return;
    lock.unlock();
    stop(grpc::Status::OK);
  }

  void stop(const grpc::Status& status) {
    std::unordered_map<std::string, Lease> leased;
    uint64_t poll = 0;
    {
      std::lock_guard lock(mutex_);
      if (over_) return;
      over_ = true;
      leased.swap(leased_);
      if (polling_) poll = poll_id_;
    }
    if (poll) verbs_.cancel_poll(poll);
    // A lease that is over may be another worker's by now.
    Time now = verbs_.now();
    for (const auto& [job, lease] : leased)
      if (lease.until > now) verbs_.release(lease.effect_id);
    Finish(status);
  }

  struct Lease {
    std::string effect_id;
    Time until;
  };
  Verbs& verbs_;
  const Caller caller_;
  std::string worker_;
  std::vector<std::string> types_;
  Time lease_ = 0;
  bool greeted_ = false;
  FromWorker in_;
  std::shared_ptr<Stream> self_;  // until grpc is done with it

  std::mutex mutex_;
  ToWorker out_;
  pawl::v1::Jobs jobs_out_;
  pawl::v1::Settled settled_out_;
  std::unordered_map<std::string, Lease> leased_;  // by job id
  std::unordered_map<std::string, int>
      unanswered_;  // how often a job was pushed without a result yet
  std::unordered_set<std::string>
      answered_;  // jobs that have had their result; forgotten now and then
  int64_t credit_ = 0;
  size_t settling_ = 0;
  uint64_t poll_id_ = 0;
  Time asked_ = 0;
  bool polling_ = false, writing_ = false, half_closed_ = false, over_ = false;
};

}  // namespace

grpc::ServerBidiReactor<FromWorker, ToWorker>* WorkersService::Work(
    grpc::CallbackServerContext* context) {
  auto caller = authenticate_(metadata(*context, "authorization"));
  auto stream = std::make_shared<Stream>(verbs_, caller ? *caller : Caller{});
  if (caller)
    stream->begin(stream);
  else
    stream->refuse(stream, caller.error());
  return stream.get();
}

}  // namespace pawl::processes

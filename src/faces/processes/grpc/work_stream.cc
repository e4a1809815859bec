#include "faces/processes/grpc/work_stream.h"

#include <unordered_map>
#include <unordered_set>

#include "faces/processes/grpc/convert.h"
#include "faces/processes/grpc/workflow_engine_service.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/limits.h"
#include "json/text.h"
#include "net/work_stream.h"

namespace pawl::processes {

namespace {

using pawl::v1::FromWorker;
using pawl::v1::ToWorker;

// The maximum credit of a worker: more jobs would only fill its memory.
constexpr int64_t kMaxCredit = 10'000;
// Bytes of variables in one message of jobs. Further jobs go with the next message, so that no
// message is larger than clients accept.
constexpr size_t kMessageBytes = 1024 * 1024;
// About the size of a job without its variables.
constexpr size_t kJobBytes = 256;
// A poll starts at this credit even while further results are on their way.
constexpr int64_t kEnoughCredit = 256;

// A JobStream keeps the leases of one worker's stream and turns jobs and results into messages.
class JobStream final : public net::WorkStream<FromWorker, ToWorker> {
 public:
  JobStream(Verbs& verbs, wire::AdmittedCall admitted)
      : WorkStream(kMaxCredit),
        verbs_(verbs),
        caller_(std::move(admitted.caller)),
        seat_(std::move(admitted.seat)) {}

 private:
  grpc::Status take(const FromWorker& message) override {
    TransportCost cost(wire::kGrpcMessageUs);
    Result<void> done = handle(message);
    return done ? grpc::Status::OK : status_of(done.error());
  }

  Result<void> handle(const FromWorker& m) {
    if (!greeted_ && !m.has_hello())
      return fail(Code::invalid, "NO_HELLO", "the first message must be a hello");
    if (m.has_hello()) return greet(m.hello());
    if (m.has_credit()) grant(m.credit().more());
    if (m.has_result()) settle(m.result());
    if (m.has_results()) {
      // The results of one message are submitted together, so that they share a commit.
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
    // 30 s by default, at most a day.
    lease_ =
        (hello.lease_seconds() <= 0 ? 30 : std::min(hello.lease_seconds(), 24 * 3600)) * kSecond;
    greeted_ = true;
    grant(hello.credit());
    return {};
  }

  uint64_t start_poll(int64_t limit) override {
    {
      Lock lock(mutex());
      poll_started_ = verbs_.now();
    }
    Poll poll{.tenant = caller_.tenant,
              .queues = types_,
              .worker = worker_,
              .limit = std::min<size_t>(static_cast<size_t>(limit), kMaxJobs),
              .lease = lease_,
              .wait = kMaxWaitMs * kMillisecond};
    return verbs_.poll(
        std::move(poll),
        [keep = shared_from_this(), this](std::vector<PolledJob> jobs) { push(std::move(jobs)); });
  }
  void cancel_poll(uint64_t poll) override { verbs_.cancel_poll(poll); }

  void push(std::vector<PolledJob> jobs) {
    {
      Lock lock(mutex());
      if (!finish_poll_locked()) {
        lock.unlock();
        for (const PolledJob& p : jobs)
          verbs_.release(p.effect_id);
        lock.lock();
        return end_if_idle(lock);
      }
      add_credit_locked(-static_cast<int64_t>(jobs.size()));
      for (PolledJob& p : jobs)
        add_job_locked(p);
      write_next_locked();
      // A poll without jobs that ends early means that the server is stopping: polling again would
      // never end.
      bool early = verbs_.now() - poll_started_ < kMaxWaitMs * kMillisecond / 2;
      if (jobs.empty() && early) return;
    }
    ask_for_work();
  }

  void add_job_locked(PolledJob& p) {
    pawl::v1::WorkerJob* job = jobs_out_.add_jobs();
    job->set_id(p.job.id);
    job->set_job_type(p.type);
    job->set_instance_id(p.job.instance_id);
    job->set_step_id(p.job.step_id);
    job->set_step_execution_id(p.job.execution_id);
    job->set_retries_remaining(static_cast<int32_t>(p.job.retries_left));
    unwritten_bytes_ += kJobBytes + p.job.variables.size();
    job->set_variables(std::move(p.job.variables));
    job->set_lock_expires_unix_ms(p.until / kMillisecond);
    ++unanswered_[p.job.id];
    leased_.insert_or_assign(p.job.id, Lease{std::move(p.effect_id), p.until});
  }

  // Whether a result returns the credit of its job. It does so once for each time that this stream
  // pushed the job, whatever became of the job meanwhile. It also does so once for a job that an
  // earlier stream of the worker held, if that job exists: the hello of this stream did not count
  // it. A repeated result returns nothing.
  enum class Credit : uint8_t { none, if_job_exists, sure };

  Credit credit_of_locked(const std::string& job) {
    auto pushed = unanswered_.find(job);
    const bool here = pushed != unanswered_.end();
    if (!here && answered_.contains(job)) return Credit::none;
    if (here && --pushed->second > 0) return Credit::sure;
    if (here) unanswered_.erase(pushed);
    if (answered_.size() >= static_cast<size_t>(kMaxCredit)) answered_.clear();
    answered_.insert(job);
    return here ? Credit::sure : Credit::if_job_exists;
  }

  void settle(const pawl::v1::Result& r) {
    Credit credit;
    {
      Lock lock(mutex());
      begin_result_locked();
      leased_.erase(r.job_id());
      credit = credit_of_locked(r.job_id());
    }
    std::string id = r.job_id();
    Done done = [keep = shared_from_this(), this, id, credit](Result<Bytes> outcome) {
      confirm(id, outcome, credit);
    };
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

  void confirm(const std::string& id, const Result<Bytes>& outcome, Credit credit) {
    {
      Lock lock(mutex());
      finish_result_locked();
      const bool unknown_job = !outcome && outcome.error().code == Code::not_found;
      if (credit == Credit::sure || (credit == Credit::if_job_exists && !unknown_job))
        add_credit_locked(1);
      if (ended_locked()) return;
      pawl::v1::Settled::One* one = settled_out_.add_results();
      one->set_job_id(id);
      if (!outcome) {
        one->set_error(std::string(error_word(outcome.error().code)));
        one->set_reason(outcome.error().message);
      }
      unwritten_bytes_ += settled_bytes(*one);
      write_next_locked();
      // Many results come at once: one poll uses the credit of all of them.
      if (results_locked() > 0 && credit_locked() < kEnoughCredit) return;
    }
    ask_for_work();
  }

  size_t unwritten_bytes_locked() const override { return unwritten_bytes_; }
  static size_t settled_bytes(const pawl::v1::Settled::One& one) {
    return one.job_id().size() + one.error().size() + one.reason().size();
  }

  // All confirmations that wait go out as one message, then the jobs.
  bool next_message_locked(ToWorker& out) override {
    if (settled_out_.results_size()) {
      for (const pawl::v1::Settled::One& one : settled_out_.results())
        unwritten_bytes_ -= settled_bytes(one);
      out.mutable_settled()->Swap(&settled_out_);
      return true;
    }
    if (!jobs_out_.jobs_size()) return false;
    take_jobs_locked(out);
    return true;
  }

  // Moves at least one job to the message, and as many more as fit.
  void take_jobs_locked(ToWorker& out) {
    auto& waiting = *jobs_out_.mutable_jobs();
    int n = 1;
    for (size_t bytes = waiting[0].variables().size();
         n < waiting.size() && bytes + waiting[n].variables().size() <= kMessageBytes; ++n)
      bytes += waiting[n].variables().size();
    for (int i = 0; i < n; ++i)
      unwritten_bytes_ -= kJobBytes + waiting[i].variables().size();
    if (n == waiting.size()) return out.mutable_jobs()->Swap(&jobs_out_);
    std::vector<pawl::v1::WorkerJob*> taken(static_cast<size_t>(n));
    waiting.ExtractSubrange(0, n, taken.data());
    for (pawl::v1::WorkerJob* job : taken)
      out.mutable_jobs()->mutable_jobs()->AddAllocated(job);
  }

  // Jobs without a result are offered to other workers at once.
  void release_work() override {
    std::unordered_map<std::string, Lease> leased;
    {
      Lock lock(mutex());
      leased.swap(leased_);
    }
    // After its lease has expired a job may belong to another worker.
    Time now = verbs_.now();
    for (const auto& [job, lease] : leased)
      if (lease.until > now) verbs_.release(lease.effect_id);
  }

  struct Lease {
    std::string effect_id;
    Time until;
  };
  Verbs& verbs_;
  const Caller caller_;
  const std::shared_ptr<void> seat_;  // see wire::AdmittedCall
  std::string worker_;
  std::vector<std::string> types_;
  Time lease_ = 0;
  bool greeted_ = false;

  // Guarded by mutex().
  size_t unwritten_bytes_ = 0;  // of jobs_out_ and settled_out_
  pawl::v1::Jobs jobs_out_;
  pawl::v1::Settled settled_out_;
  std::unordered_map<std::string, Lease> leased_;    // by job id
  std::unordered_map<std::string, int> unanswered_;  // job id -> pushes without a result
  std::unordered_set<std::string> answered_;         // recent jobs that had a result
  Time poll_started_ = 0;
};

}  // namespace

grpc::ServerBidiReactor<FromWorker, ToWorker>* WorkersService::Work(
    grpc::CallbackServerContext* context) {
  auto admitted = admit_(wire::stream_of(*context, "/pawl.v1.Workers/Work"));
  auto stream = std::make_shared<JobStream>(verbs_, admitted ? *admitted : wire::AdmittedCall{});
  if (admitted)
    stream->begin();
  else
    stream->refuse(status_of(admitted.error()));
  return stream.get();
}

}  // namespace pawl::processes

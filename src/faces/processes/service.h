#pragma once
// The verbs of the processes face. HTTP and gRPC both call them. Commands are submitted to the
// kernel and answered when they are durable; reads are answered at once.

#include <functional>

#include "faces/processes/parked.h"
#include "faces/processes/run/commands.h"
#include "faces/processes/state/cells.h"
#include "faces/processes/state/counts.h"
#include "faces/processes/state/job.h"
#include "faces/processes/state/limiter.h"
#include "faces/processes/state/note.h"
#include "faces/processes/state/signal.h"
#include "kernel/access.h"
#include "kernel/work_queue.h"

namespace pawl::processes {

// The caller of a command, and its Idempotency-Key.
struct Submitter {
  Caller caller;
  std::string once{};  // empty: no key
};
using Done = std::move_only_function<void(Result<Bytes>)>;

// A job under a lease. `effect_id` is what release() takes.
struct PolledJob {
  Job job;
  std::string type;
  std::string effect_id;
  Time locked = 0, until = 0;  // begin and end of the lease
};
using JobsDone = std::move_only_function<void(std::vector<PolledJob>)>;

// Empty members do not filter.
struct InstanceFilter {
  std::string definition_id;
  std::optional<Status> status;
  std::string business_key;
  // Filters of the operators' list. They have no index: each instance is read.
  std::string step{}, parent_id{};
  Time started_from = 0, started_to = INT64_MAX, updated_from = 0, updated_to = INT64_MAX;
  std::vector<std::pair<std::string, json::Value>> variables{};  // path, wanted value
  std::optional<bool> paused{};
};

struct InstancePage {
  std::vector<std::shared_ptr<const Instance>> items;
  // Matches on all pages.
  size_t total = 0;
};

// One entry of a token into a step. `ended` is 0 while it runs.
struct ExecutionRow {
  uint32_t ordinal = 0;
  std::string step;
  Kind kind = Kind::end;
  uint32_t attempt = 0;
  Execution status = Execution::running;
  Time started = 0, ended = 0;
  std::string reason;
};

// One entry of an instance's history: what one turn did to it.
struct Event {
  Seq seq = 0;
  Time at = 0;
  Note note;
};

struct ServiceOptions {
  // A result counts only from the worker that holds the lease of the job.
  bool strict_leases = false;
};

// Refuses tenants whose names begin with '~', which is where the cells of all tenants are.
Result<void> check_tenant(std::string_view tenant);
// Submits a command of processes. `decoded` is the body as the program takes it; the bytes are for
// the journal. It may be null.
void send_command(KernelAccess& kernel, Submitter submitter, std::string_view verb, Bytes body,
                  Decoded decoded, Done done);

// The lease that a worker asks for: 30 seconds when it names none, at most a day.
inline Time lease_of(int64_t seconds) {
  return (seconds <= 0 ? 30 : std::min<int64_t>(seconds, 24 * 3600)) * kSecond;
}

class Service {
 public:
  Service(KernelAccess& kernel, WorkQueue& work, QuarantineAccess quarantine = {},
          ServiceOptions options = {});

  // Commands.
  // Each calls `done` once: at once for a refusal, else when the frame is durable, from any thread.
  // Answers are the JSON of the HTTP API.
  void upload(Submitter submitter, json::Value document, Done done);
  void start(Submitter submitter, StartCommand command, Done done);
  void complete(Submitter submitter, ResultCommand command, Done done);
  void fail_job(Submitter submitter, FailCommand command, Done done);
  void complete_task(Submitter submitter, ResultCommand command, Done done);
  void signal(Submitter submitter, ResultCommand command, Done done);
  // By name and correlation key: {"delivered": true, "instanceId", "stepId"} when a WAIT took it,
  // else {"delivered": false, "id", "until"}.
  void publish(Submitter submitter, PublishCommand command, Done done);
  void drop_signal(Submitter submitter, const std::string& signal_id, Done done);
  // Erases an instance that has ended, from all lists and rows. The answer names its last event,
  // which the journal still shows, and until when ("archivedUntil": null for ever).
  void forget(Submitter submitter, const std::string& instance_id, Done done);
  // {"completed"?, "failed"?, "cancelled"?}: the default retention of the tenant's instances.
  void set_retention(Submitter submitter, const json::Value& retention, Done done);
  Result<std::string> retention(std::string_view tenant) const;
  void cancel(Submitter submitter, CancelCommand command, Done done);
  // An operator's order: {"operation", "instanceId", "stepId"?, "reason"?, ...}, as run/operate.cc
  // reads it. A retry also releases the instance's effects in quarantine.
  void operate(Submitter submitter, const json::Value& order, Done done);
  void pause_definition(Submitter submitter, const std::string& id, bool paused,
                        const std::string& reason, Done done);
  // `version` is for activate.
  void activate(Submitter submitter, const std::string& id, uint32_t version, Done done);
  void retire(Submitter submitter, const std::string& id, const std::string& reason, Done done);
  // Refused with conflict DEFINITION_IN_USE while instances of the definition run.
  void delete_definition(Submitter submitter, const std::string& id, Done done);
  void pause_type(Submitter submitter, const std::string& job_type, bool paused,
                  const std::string& reason, Done done);

  // Jobs. Returns the number that cancels a waiting poll.
  uint64_t poll(Poll poll, JobsDone done);
  // A waiting poll is dropped and its callback is not called. give_up_poll() below answers it with
  // no jobs instead. Both ignore a poll that was answered already.
  void cancel_poll(uint64_t id) { work_.cancel(id); }
  // Merges the variables and runs the failed step again.
  void retry_step(Submitter submitter, std::string_view id, std::string_view step,
                  const VariablesPtr& variables, Done done);
  void give_up_poll(uint64_t id) { work_.give_up(id); }
  void release(std::string_view effect_id) { work_.release(effect_id); }
  // Extends the worker's lease to `lease` from now on; returns its end. Errors: precondition
  // LEASE_LOST when the worker does not hold the job (any more), not_found NO_JOB.
  Result<Time> extend_lease(std::string_view tenant, std::string_view job_id,
                            std::string_view worker, Time lease);
  std::vector<WorkQueue::Depth> depths(std::string_view tenant) const;
  // Why the job waits, and when it may run: {"state", "reason", ...}.
  Result<std::string> explain(std::string_view tenant, std::string_view job_id) const;
  // Jobs of all tenants that wait for a limit, by definition ("~name" for a shared limit).
  Result<std::vector<std::pair<std::string, size_t>>> waiting_by_limit() const;

  // Effects in quarantine that belong to instances of the tenant, or to one instance.
  struct ParkedEffect {
    std::string effect_id;
    std::string kind;  // as in EffectOwner
    uint32_t ordinal = 0;
    Time since = 0;
    std::shared_ptr<const Instance> instance;
  };
  std::vector<ParkedEffect> parked(std::string_view tenant,
                                   std::string_view instance_id = {}) const;
  // Whether the filter lets the instance through.
  bool is_listed(std::string_view tenant, const Instance& instance,
                 const InstanceFilter& filter) const;

  // Reads. Version 0 means the latest.
  Result<std::shared_ptr<const Definition>> definition(std::string_view tenant, std::string_view id,
                                                       uint32_t version) const;
  Result<std::shared_ptr<const DefinitionHead>> head(std::string_view tenant,
                                                     std::string_view id) const;
  struct DefinitionSummary {
    std::string id, name;
    uint32_t version;
    Time uploaded;
  };
  Result<std::pair<std::vector<DefinitionSummary>, size_t>> definitions(std::string_view tenant,
                                                                        std::string_view keyword,
                                                                        size_t page,
                                                                        size_t size) const;
  Result<std::shared_ptr<const Instance>> instance(std::string_view tenant,
                                                   std::string_view id) const;
  Result<std::string> instance_text(std::string_view tenant,
                                    const Instance& instance) const;  // as JSON
  Result<InstancePage> instances(std::string_view tenant, const InstanceFilter& filter, size_t page,
                                 size_t size) const;
  // The operators' list, newest first, from after `cursor` on.
  struct FoundInstances {
    std::vector<std::shared_ptr<const Instance>> items;
    std::string cursor;  // of the next page; empty on the last one
  };
  Result<FoundInstances> find(std::string_view tenant, const InstanceFilter& filter,
                              std::string_view cursor, size_t limit) const;
  Result<std::vector<ExecutionRow>> history(std::string_view tenant,
                                            std::string_view instance_id) const;
  Result<std::vector<Event>> events(std::string_view tenant, std::string_view instance_id) const;
  // The instance as it was after the event with this seq, from the journal. NO_EVENT when that
  // frame did not write the instance.
  Result<Instance> state_at(std::string_view tenant, std::string_view instance_id, Seq seq) const;
  // Open user tasks, oldest first. A task must have the definition, business key and form of `like`
  // where those are not empty.
  Result<std::vector<UserTask>> tasks(std::string_view tenant, const UserTask& like,
                                      std::string_view cursor, size_t limit,
                                      std::string* next) const;
  // Kept signals by id, oldest first. An empty name or key of `like` does not filter.
  Result<std::vector<std::pair<std::string, KeptSignal>>> kept_signals(std::string_view tenant,
                                                                       const KeptSignal& like,
                                                                       std::string_view cursor,
                                                                       size_t limit,
                                                                       std::string* next) const;
  Result<std::vector<std::pair<std::string, std::string>>> paused_types(
      std::string_view tenant) const;
  const InstanceCounts& counts() const { return counts_; }
  Time now() const { return kernel_.now(); }

 private:
  // A job by its id. `token` is null when the job has ended. Error: not_found NO_JOB.
  struct FoundJob {
    std::shared_ptr<const Instance> instance;
    uint32_t ordinal = 0;
    const Token* token = nullptr;
  };
  Result<FoundJob> find_job(std::string_view tenant, std::string_view job_id) const;
  // With strict leases: refuses a worker that does not hold the lease of an open job.
  Result<void> check_lease(std::string_view tenant, std::string_view job_id,
                           std::string_view worker) const;
  void send(Submitter submitter, std::string_view verb, Bytes body, Decoded decoded, Done done);
  template <class Command>
  void submit(Submitter submitter, std::string_view verb, Command command, Done done);
  void begin_attempts(const Caller& caller, std::vector<PolledJob> jobs, JobsDone done);
  bool fits(std::string_view tenant, const Instance& instance, const InstanceFilter& filter) const;
  void restore_pauses();
  // Returns how many were released.
  Result<size_t> release_parked(std::string_view tenant, std::string_view instance_id);
  // The place of a waiting job in the queue of its limiter, from 1.
  Result<size_t> waiting_position(std::string_view tenant, const LimitUse& use,
                                  const Limiter& limiter, const WaitingJob& job,
                                  std::string_view effect_id) const;
  Result<std::string> explain_waiting(std::string_view tenant, const LimitUse& use,
                                      const WaitingJob& job, std::string_view effect_id) const;
  Result<std::string> explain_ended(std::string_view tenant, const Instance& instance,
                                    uint32_t job) const;

  KernelAccess& kernel_;
  WorkQueue& work_;
  const QuarantineAccess quarantine_;
  const ServiceOptions options_;
  InstanceCounts counts_;
};

}  // namespace pawl::processes

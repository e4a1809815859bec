#pragma once
// Workers keeps track of which open effects are offered, leased or held back, by tenant and queue.
// All of it is in memory and rebuilt at start; leases are promises, not frames.

#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/memory_budget.h"
#include "kernel/access.h"
#include "kernel/work_queue.h"
#include "runtime/background.h"

namespace pawl {

struct WorkerLimits {
  // Jobs of one tenant that workers hold; 0 for no limit. A poll gets no more of them, and admit()
  // refuses further polls.
  size_t tenant_leases = 0;
  // Polls that wait are counted here.
  ChargeFor charge{};
};

class Workers final : public WorkQueue, public Outbox {
 public:
  // Returns when a job was created. Older jobs are handed out first.
  using Age = Time (*)(const Effect& effect);
  // The kernel and the background must outlive this object.
  explicit Workers(
      KernelAccess& kernel, Background& background,
      Age age = [](const Effect&) -> Time { return 0; }, WorkerLimits limits = {})
      : kernel_(kernel), background_(background), age_(age), limits_(std::move(limits)) {}
  ~Workers() override { stop(); }
  void start();
  void stop();  // waiting polls are answered with an empty list

  // See WorkQueue for the contracts. No lock is held while `done` runs, so it may call this object.
  uint64_t poll(Poll poll, Polled done) override;
  void cancel(uint64_t poll) override;
  void give_up(uint64_t poll) override;
  void release(std::string_view effect_id) override;
  std::optional<Time> extend(std::string_view effect_id, std::string_view worker,
                             Time until) override;
  void pause(std::string_view program, std::string_view tenant, std::string_view queue,
             bool paused) override;
  std::vector<Depth> depths() const override;
  std::optional<Place> place_of(std::string_view effect_id) const override;

  // Fails with `exhausted` when a poll of this tenant should not come now: its workers hold as many
  // jobs as they may, or its waiting polls use up its share of the memory. A poll that comes all
  // the same waits like any other.
  Result<void> admit(const std::string& tenant) const;

  // The shard calls these after the frame is durable, in frame order. Polls are answered in
  // flushed(), at the end of a group, so that one poll can take all jobs of the group.
  void opened(const EffectPtr& effect) override;
  void closed(const Effect& effect) override;
  void flushed() override;

  uint64_t leases_expired() const;

 private:
  struct Name {
    std::string program, tenant, queue;
    auto operator<=>(const Name&) const = default;
  };
  // offered: waits for a poll. leased: a worker has it. held: not due yet. gone: settled or
  // withdrawn, and perhaps still in a queue's list.
  enum class State : uint8_t { offered, leased, held, gone };
  struct Queue;
  // Queues and jobs are ordered by the order in which they came, and not by their addresses: the
  // same requests get the same answers every time.
  struct ByNumber {
    bool operator()(const Queue* a, const Queue* b) const;
  };
  using Queues = std::set<Queue*, ByNumber>;
  // The jobs that one tenant's workers hold, in all queues.
  struct Tenant {
    size_t leased = 0;
    Queues full;  // queues that gave nothing because the tenant is at its limit
  };
  struct Job {
    EffectPtr effect;  // without its body when that is large
    size_t body_bytes;
    Queue* queue;
    Time born;
    State state;
    Time until;            // leased: end of the lease; held back: when it may be offered
    std::string worker{};  // leased
    uint64_t number = 0;
  };
  using JobPtr = std::shared_ptr<Job>;
  struct ByTime {
    bool operator()(const std::pair<Time, JobPtr>& a, const std::pair<Time, JobPtr>& b) const {
      return std::pair(a.first, a.second->number) < std::pair(b.first, b.second->number);
    }
  };
  // A poll that found no job and waits. It is in the list of each of its queues and in waiting_.
  struct Waiting;
  using PollList = std::list<std::shared_ptr<Waiting>>;
  struct Waiting {
    uint64_t id;
    Poll poll;
    Polled done;
    Time until;
    std::vector<Queue*> queues;
    // The place of this poll in the list of each queue, in the order of `queues`. A poll that ends
    // is found through them, so its cost does not grow with the number of other polls.
    std::vector<PollList::iterator> places;
    MemoryCharge charge{};
  };
  // Offered jobs, oldest first. Jobs that are gone are skipped when they are reached, and swept
  // when they outnumber the others. A job that is older than the last one in `offered` when it
  // arrives (it was returned, or dates from before a restart) goes into `older`.
  struct Line {
    std::deque<JobPtr> offered;
    std::multimap<Time, JobPtr> older;
    size_t size() const { return offered.size() + older.size(); }
  };
  // The jobs of one priority, by fairness key. The keys are served in turn.
  struct Level {
    std::map<std::string, Line> lines;
    std::string last;  // the key that was served last
  };
  struct Queue {
    Tenant* tenant = nullptr;
    std::map<int32_t, Level, std::greater<>> levels;  // without empty levels and lines
    size_t listed = 0;                                // jobs in all lines, gone ones included
    PollList polls;
    size_t ready = 0, leased = 0, jobs = 0;  // `jobs` includes those held back
    bool paused = false;
    uint64_t number = 0;
  };
  // A job that was leased. `needs_body`: its effect has no body yet, see load().
  struct Taken {
    Leased leased;
    size_t body_bytes;
    bool needs_body;
  };
  // A poll that is answered after the lock is released.
  struct Ready {
    std::shared_ptr<Waiting> waiting;
    std::vector<Taken> taken;
  };

  // These need mutex_, except remove() and step(), which take it, and tell() and load(), which are
  // called without it.
  Queue& queue(const Name& name);
  void sweep();  // drops unused queues once there are many; the caller may hold no Queue*
  void offer(const JobPtr& job);
  static JobPtr oldest(Line& line);
  static JobPtr next_job(Queue& queue);
  static bool drop_gone(Queue& queue);  // at the front; returns whether a job is left
  static void sweep_gone(Queue& queue);
  void forget(std::string_view id);
  void end_lease(Queue& queue);
  bool take_one(Queue& queue, Time now, const Poll& poll, std::vector<Taken>& out);
  std::vector<Taken> take_by_priority(Waiting& waiting, Time now);
  std::vector<Taken> take(Waiting& waiting, Time now);
  void wake(Queue& queue, std::vector<Ready>& ready);
  void wake_touched(std::vector<Ready>& ready);
  std::vector<Queue*> queues_of(const Poll& poll);
  void settle(Waiting& waiting);
  std::shared_ptr<Waiting> remove(uint64_t poll);
  void wake_by(Time when);
  Time step();
  void tell(std::vector<Ready>& ready);
  // Without mutex_: reads the bodies that the queues do not keep. Jobs that were settled meanwhile
  // are left out.
  std::vector<Leased> load(std::vector<Taken> taken) const;

  KernelAccess& kernel_;
  Background& background_;
  const Age age_;
  const WorkerLimits limits_;
  mutable std::mutex mutex_;
  std::map<std::string, Tenant> tenants_;  // of the queues
  std::map<Name, std::unique_ptr<Queue>> queues_;
  size_t sweep_at_ = 1024;
  std::unordered_map<std::string_view, JobPtr> jobs_;  // by effect id
  std::set<std::pair<Time, JobPtr>, ByTime> times_;    // ends of leases and of holds
  std::set<std::pair<Time, uint64_t>> deadlines_;      // deadlines of waiting polls
  std::unordered_map<uint64_t, std::shared_ptr<Waiting>> waiting_;
  Queues touched_;            // queues with new jobs since the last flushed()
  uint64_t next_number_ = 1;  // of a queue or a job
  uint64_t next_poll_ = 1;
  Time next_wake_ = INT64_MAX;  // when the loop runs by itself
  size_t turn_ = 0;             // rotates the first queue of a poll, for fairness
  uint64_t expired_ = 0;
  size_t prioritised_ = 0;  // jobs with a priority other than 0
  bool ending_ = false;
  std::unique_ptr<BackgroundLoop> loop_;  // null before start() and after stop()
};

inline bool Workers::ByNumber::operator()(const Queue* a, const Queue* b) const {
  return a->number < b->number;
}

}  // namespace pawl

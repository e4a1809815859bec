#include "runtime/workers.h"

#include <queue>
#include <unordered_set>

namespace pawl {

// The loop ends leases, offers jobs whose time has come, and ends polls that have waited long
// enough.
void Workers::start() {
  std::lock_guard lock(mutex_);
  loop_ = background_.loop("workers", [this] { return step(); });
}

void Workers::stop() {
  std::vector<Ready> ready;
  std::unique_ptr<BackgroundLoop> ended;  // destroyed without the lock, which its step takes
  {
    std::lock_guard lock(mutex_);
    // From now on poll() answers at once.
    ending_ = true;
    ended = std::move(loop_);
    for (auto& [id, waiting] : waiting_) {
      settle(*waiting);
      ready.push_back({waiting, {}});
    }
    waiting_.clear();
  }
  tell(ready);
}

Workers::Queue& Workers::queue(const Name& name) {
  auto& place = queues_[name];
  if (!place) {
    place = std::make_unique<Queue>();
    place->number = next_number_++;
    place->tenant = &tenants_[name.tenant];
  }
  return *place;
}

// Makes room for a further job of the tenant. Queues that waited for room are looked at again, as
// if they had a new job.
void Workers::end_lease(Queue& q) {
  --q.leased;
  --q.tenant->leased;
  touched_.merge(q.tenant->full);
  q.tenant->full.clear();
}

// The name, its places in the maps and lists, and the queue itself when nobody else uses it.
static constexpr size_t kWaitingQueueBytes = 400;
static constexpr size_t kWaitingPollBytes = 1024;

static size_t waiting_bytes(const Poll& poll) {
  size_t bytes = kWaitingPollBytes;
  for (const std::string& name : poll.queues)
    bytes += kWaitingQueueBytes + 2 * name.size();
  return bytes;
}

Result<void> Workers::admit(const std::string& tenant) const {
  {
    std::lock_guard lock(mutex_);
    auto found = tenants_.find(tenant);
    if (limits_.tenant_leases && found != tenants_.end() &&
        found->second.leased >= limits_.tenant_leases)
      return fail(Code::exhausted, "TENANT_JOBS",
                  "jobs in flight of one tenant: at most " + std::to_string(limits_.tenant_leases) +
                      " are allowed (--tenant-max-jobs); finish some and poll again");
  }
  // Polls that come all the same are counted by force, so this tells whether there is room.
  if (charge_for(limits_.charge, MemoryUse::polls, tenant).resize(kWaitingPollBytes)) return {};
  return fail(Code::exhausted, "WAITING_POLLS",
              "polls that wait use up the server's memory for them (--memory-budget); retry later, "
              "or poll for fewer types at a time");
}

// A poll may name any queue, so unused names must be dropped at some point.
void Workers::sweep() {
  if (queues_.size() < sweep_at_) return;
  std::erase_if(queues_, [&](const auto& one) {
    const Queue& q = *one.second;
    const bool idle = q.jobs == 0 && q.polls.empty() && !q.paused;
    if (idle) {
      touched_.erase(one.second.get());
      q.tenant->full.erase(one.second.get());
    }
    return idle;
  });
  std::set<const Tenant*> used;
  for (const auto& [name, q] : queues_)
    used.insert(q->tenant);
  std::erase_if(tenants_, [&](const auto& one) { return !used.contains(&one.second); });
  sweep_at_ = std::max<size_t>(1024, queues_.size() * 2);
}

// Called without the lock: an answer may poll again at once.
void Workers::tell(std::vector<Ready>& ready) {
  for (auto& [waiting, taken] : ready) {
    const bool found = !taken.empty();
    std::vector<Leased> leased = load(std::move(taken));
    if (found && leased.empty()) {
      // All of its jobs were settled before their bodies could be read: it waits on.
      waiting->poll.wait = std::max<Time>(0, waiting->until - kernel_.now());
      poll(std::move(waiting->poll), std::move(waiting->done));
    } else {
      waiting->done(std::move(leased));
    }
  }
  ready.clear();
}

std::vector<Leased> Workers::load(std::vector<Taken> taken) const {
  std::vector<Leased> out;
  out.reserve(taken.size());
  for (Taken& one : taken) {
    if (one.needs_body) {
      auto cell = kernel_.read(effect_key(one.leased.effect->id));
      if (!cell || !cell->exists()) continue;
      // Decoded here and not with Cell::as: the cache would keep the body twice.
      auto effect = decode_effect(cell->value());
      if (!effect) continue;
      one.leased.effect = std::make_shared<const Effect>(std::move(*effect));
    }
    out.push_back(std::move(one.leased));
  }
  return out;
}

// Marks the queue as touched; the caller wakes its polls later, when the group is complete.
void Workers::offer(const JobPtr& job) {
  job->state = State::offered;
  Queue& q = *job->queue;
  Line& line = q.levels[job->effect->priority].lines[job->effect->fairness_key];
  if (line.offered.empty() || line.offered.back()->born <= job->born)
    line.offered.push_back(job);
  else
    line.older.emplace(job->born, job);
  ++q.listed;
  ++q.ready;
  touched_.insert(job->queue);
}

// Larger bodies are not kept with the job: open jobs are many, and their effects are in the cells.
static constexpr size_t kKeptBodyBytes = 4096;

static EffectPtr without_large_body(const EffectPtr& effect) {
  if (effect->body.size() <= kKeptBodyBytes) return effect;
  return std::make_shared<const Effect>(Effect{effect->id,
                                               effect->to,
                                               effect->program,
                                               effect->tenant,
                                               effect->queue,
                                               effect->due,
                                               {},
                                               effect->priority,
                                               effect->fairness_key});
}

void Workers::opened(const EffectPtr& opened) {
  EffectPtr effect = without_large_body(opened);
  std::lock_guard lock(mutex_);
  forget(effect->id);  // an id may be reused: leases of its former job are void
  sweep();
  // A job whose time has not come is held; everything else is offered at once.
  auto job = std::make_shared<Job>(Job{effect, opened->body.size(),
                                       &queue({effect->program, effect->tenant, effect->queue}),
                                       age_(*opened), State::held, effect->due});
  job->number = next_number_++;
  ++job->queue->jobs;
  if (effect->priority) ++prioritised_;
  jobs_.emplace(effect->id, job);
  if (effect->due > kernel_.now()) {
    times_.emplace(effect->due, std::move(job));
    wake_by(effect->due);
  } else {
    offer(job);
  }
}

void Workers::closed(const Effect& effect) {
  std::lock_guard lock(mutex_);
  forget(effect.id);
}

void Workers::forget(std::string_view id) {
  auto it = jobs_.find(id);
  if (it == jobs_.end()) return;
  JobPtr job = std::move(it->second);
  jobs_.erase(it);
  Queue& q = *job->queue;
  --q.jobs;
  if (job->effect->priority) --prioritised_;
  if (job->state == State::leased) end_lease(q);
  if (job->state != State::offered) times_.erase({job->until, job});
  const bool was_offered = std::exchange(job->state, State::gone) == State::offered;
  // Without polls no one reaches the jobs that are gone, so they are swept here once they outnumber
  // the others. The 64 keeps short lists from being swept again and again.
  if (!was_offered || --q.ready + 64 >= q.listed / 2) return;
  sweep_gone(q);
}

void Workers::sweep_gone(Queue& q) {
  q.listed = 0;
  for (auto& [priority, level] : q.levels) {
    for (auto& [key, line] : level.lines) {
      std::erase_if(line.offered, [](const JobPtr& one) { return one->state == State::gone; });
      std::erase_if(line.older, [](const auto& one) { return one.second->state == State::gone; });
      q.listed += line.size();
    }
    std::erase_if(level.lines, [](const auto& one) { return one.second.size() == 0; });
  }
  std::erase_if(q.levels, [](const auto& one) { return one.second.lines.empty(); });
}

void Workers::flushed() {
  std::vector<Ready> ready;
  {
    std::lock_guard lock(mutex_);
    wake_touched(ready);
  }
  tell(ready);
}

void Workers::wake_touched(std::vector<Ready>& ready) {
  auto touched = std::move(touched_);
  touched_.clear();
  for (Queue* q : touched)
    wake(*q, ready);
}

// Removes and returns the oldest job of the line, which has one.
Workers::JobPtr Workers::oldest(Line& line) {
  JobPtr job;
  if (line.older.empty() ||
      (!line.offered.empty() && line.offered.front()->born <= line.older.begin()->first)) {
    job = std::move(line.offered.front());
    line.offered.pop_front();
  } else {
    job = std::move(line.older.begin()->second);
    line.older.erase(line.older.begin());
  }
  return job;
}

// Removes and returns the next offered job of the queue; null when there is none. The job has the
// highest priority, and its fairness key follows the one that was served last.
Workers::JobPtr Workers::next_job(Queue& q) {
  while (!q.levels.empty()) {
    Level& level = q.levels.begin()->second;
    auto line = level.lines.upper_bound(level.last);
    if (line == level.lines.end()) line = level.lines.begin();
    JobPtr job = oldest(line->second);
    --q.listed;
    const bool offered = job->state == State::offered;
    if (offered) level.last = line->first;
    if (line->second.size() == 0) level.lines.erase(line);
    if (level.lines.empty()) q.levels.erase(q.levels.begin());
    if (offered) return job;
  }
  return nullptr;
}

bool Workers::take_one(Queue& q, Time now, const Poll& poll, std::vector<Taken>& out) {
  if (q.paused) return false;
  if (limits_.tenant_leases && q.tenant->leased >= limits_.tenant_leases) {
    if (q.ready) q.tenant->full.insert(&q);
    return false;
  }
  JobPtr job = next_job(q);
  if (!job) return false;
  job->state = State::leased;
  job->until = now + poll.lease;
  job->worker = poll.worker;
  out.push_back(
      {{job->effect, job->until}, job->body_bytes, job->body_bytes != job->effect->body.size()});
  wake_by(job->until);
  // Most leases have the same length, so the newest one usually ends last.
  times_.emplace_hint(times_.end(), now + poll.lease, std::move(job));
  --q.ready;
  ++q.leased;
  ++q.tenant->leased;
  return true;
}

// Limit on the bodies of the jobs in one poll's answer. An answer must fit a gRPC message (64 MiB):
// otherwise it would fail and be polled again for ever. The first job is taken at any size.
static constexpr size_t kPollBytes = 16 * 1024 * 1024;

// Takes one job from each queue in turn, beginning where the last poll ended, until the limit is
// reached or all queues are empty.
std::vector<Workers::Taken> Workers::take(Waiting& w, Time now) {
  if (prioritised_) return take_by_priority(w, now);
  std::vector<Taken> out;
  size_t n = w.queues.size(), dry = 0, bytes = 0;
  while (out.size() < w.poll.limit && dry < n && bytes < kPollBytes) {
    if (take_one(*w.queues[turn_++ % n], now, w.poll, out)) {
      dry = 0;
      bytes += out.back().body_bytes;
    } else {
      ++dry;
    }
  }
  return out;
}

// The same when some jobs have priorities: takes from the queue whose next job has the highest one,
// and from queues with equal priorities in turn.
std::vector<Workers::Taken> Workers::take_by_priority(Waiting& w, Time now) {
  struct Candidate {
    int32_t priority;
    size_t order;  // lower ones are served first
    Queue* queue;
    bool operator<(const Candidate& o) const {
      return priority != o.priority ? priority < o.priority : order > o.order;
    }
  };
  std::priority_queue<Candidate> candidates;
  auto add = [&](Queue* q, size_t order) {
    if (!q->paused && drop_gone(*q)) candidates.push({q->levels.begin()->first, order, q});
  };
  const size_t n = w.queues.size(), first = n ? turn_++ % n : 0;
  for (size_t i = 0; i < n; ++i)
    add(w.queues[(first + i) % n], i);
  std::vector<Taken> out;
  size_t bytes = 0, order = n;
  while (out.size() < w.poll.limit && !candidates.empty() && bytes < kPollBytes) {
    Queue* q = candidates.top().queue;
    candidates.pop();
    if (!take_one(*q, now, w.poll, out)) continue;
    bytes += out.back().body_bytes;
    add(q, order++);
  }
  return out;
}

// Without this, a level of jobs that are gone would be taken for the queue's highest priority.
bool Workers::drop_gone(Queue& q) {
  while (!q.levels.empty()) {
    Level& level = q.levels.begin()->second;
    auto line = level.lines.upper_bound(level.last);
    if (line == level.lines.end()) line = level.lines.begin();
    Line& at = line->second;
    if (!at.offered.empty() && at.offered.front()->state == State::offered) return true;
    if (!at.older.empty() && at.older.begin()->second->state == State::offered) return true;
    oldest(at);
    --q.listed;
    if (at.size() == 0) level.lines.erase(line);
    if (level.lines.empty()) q.levels.erase(q.levels.begin());
  }
  return false;
}

// Takes the poll out of all its queues and forgets its deadline. The caller removes it from
// waiting_ and answers it.
void Workers::settle(Waiting& w) {
  deadlines_.erase({w.until, w.id});
  for (size_t i = 0; i < w.queues.size(); ++i)
    w.queues[i]->polls.erase(w.places[i]);
  w.places.clear();
}

// Gives jobs to the waiting polls of a queue, the one that has waited longest first. A poll takes
// from all of its queues, not only from this one.
void Workers::wake(Queue& q, std::vector<Ready>& ready) {
  while (q.ready > 0 && !q.paused && !q.polls.empty()) {
    std::shared_ptr<Waiting> w = q.polls.front();
    std::vector<Taken> got = take(*w, kernel_.now());
    if (got.empty()) return;
    settle(*w);
    waiting_.erase(w->id);
    ready.push_back({std::move(w), std::move(got)});
  }
}

// The queues of a poll in the order of their names in the poll, each once.
std::vector<Workers::Queue*> Workers::queues_of(const Poll& poll) {
  std::vector<Queue*> out;
  std::unordered_set<Queue*> seen;
  out.reserve(poll.queues.size());
  for (const std::string& name : poll.queues) {
    Queue* q = &queue({poll.program, poll.tenant, name});
    // Most polls name one queue.
    if (poll.queues.size() == 1 || seen.insert(q).second) out.push_back(q);
  }
  return out;
}

uint64_t Workers::poll(Poll poll, Polled done) {
  auto w = std::make_shared<Waiting>();
  std::vector<Taken> got;
  MemoryCharge charge;
  if (limits_.charge && poll.wait > 0) {
    charge = limits_.charge(MemoryUse::polls, poll.tenant);
    charge.force(waiting_bytes(poll));
  }
  {
    std::lock_guard lock(mutex_);
    Time now = kernel_.now();
    w->poll = std::move(poll);
    w->until = now + w->poll.wait;
    sweep();
    w->queues = queues_of(w->poll);
    // When something was taken, or the poll does not want to wait, it is answered below without the
    // lock.
    got = take(*w, now);
    if (got.empty() && w->poll.wait > 0 && !w->queues.empty() && !ending_) {
      w->id = next_poll_++;
      w->charge = std::move(charge);
      w->done = std::move(done);
      deadlines_.emplace(w->until, w->id);
      waiting_.emplace(w->id, w);
      w->places.reserve(w->queues.size());
      for (Queue* q : w->queues)
        w->places.push_back(q->polls.insert(q->polls.end(), w));
      wake_by(w->until);
      return w->id;
    }
  }
  if (got.empty()) {
    done({});
    return 0;
  }
  w->done = std::move(done);
  std::vector<Ready> ready;
  ready.push_back({std::move(w), std::move(got)});
  tell(ready);
  return 0;
}

std::shared_ptr<Workers::Waiting> Workers::remove(uint64_t id) {
  std::lock_guard lock(mutex_);
  auto it = waiting_.find(id);
  if (it == waiting_.end()) return nullptr;
  std::shared_ptr<Waiting> waiting = it->second;
  settle(*waiting);
  waiting_.erase(it);
  return waiting;
}

void Workers::cancel(uint64_t id) { remove(id); }

void Workers::give_up(uint64_t id) {
  if (auto waiting = remove(id)) waiting->done({});
}

void Workers::release(std::string_view effect_id) {
  std::vector<Ready> ready;
  {
    std::lock_guard lock(mutex_);
    auto it = jobs_.find(effect_id);
    // The lease may have ended already, or the job may be settled: then there is nothing to
    // release.
    if (it == jobs_.end() || it->second->state != State::leased) return;
    JobPtr job = it->second;
    times_.erase({job->until, job});
    end_lease(*job->queue);
    offer(job);
    wake_touched(ready);
  }
  tell(ready);
}

std::optional<Time> Workers::extend(std::string_view effect_id, std::string_view worker,
                                    Time until) {
  std::lock_guard lock(mutex_);
  auto it = jobs_.find(effect_id);
  if (it == jobs_.end() || it->second->state != State::leased || it->second->worker != worker)
    return std::nullopt;
  const JobPtr& job = it->second;
  if (until > job->until) {
    times_.erase({job->until, job});
    job->until = until;
    times_.insert({until, job});
  }
  return job->until;
}

void Workers::pause(std::string_view program, std::string_view tenant, std::string_view name,
                    bool paused) {
  std::vector<Ready> ready;
  {
    std::lock_guard lock(mutex_);
    sweep();
    Queue& q = queue({std::string(program), std::string(tenant), std::string(name)});
    q.paused = paused;
    if (!paused) wake(q, ready);
  }
  tell(ready);
}

std::vector<WorkQueue::Depth> Workers::depths() const {
  std::lock_guard lock(mutex_);
  std::vector<Depth> out;
  for (const auto& [name, q] : queues_)
    out.push_back(
        {name.program, name.tenant, name.queue, q->ready, q->leased, q->polls.size(), q->paused});
  return out;
}

std::optional<WorkQueue::Place> Workers::place_of(std::string_view effect_id) const {
  std::lock_guard lock(mutex_);
  auto it = jobs_.find(effect_id);
  if (it == jobs_.end()) return std::nullopt;
  const Job& job = *it->second;
  const Queue& q = *job.queue;
  Place place{Place::State::offered,
              job.until,
              "",
              {job.effect->program, job.effect->tenant, job.effect->queue, q.ready, q.leased,
               q.polls.size(), q.paused}};
  if (job.state == State::held) place.state = Place::State::held;
  if (job.state == State::leased) {
    place.state = Place::State::leased;
    place.worker = job.worker;
  }
  return place;
}

uint64_t Workers::leases_expired() const {
  std::lock_guard lock(mutex_);
  return expired_;
}

// The loop waits until the earliest known time, so only an earlier time needs to wake it.
void Workers::wake_by(Time when) {
  if (when >= next_wake_) return;
  next_wake_ = when;
  if (loop_) loop_->wake();
}

// Returns the earliest end of a lease, a hold or a poll's wait. After answers were sent without the
// lock, everything is looked at again.
Time Workers::step() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    Time now = kernel_.now();
    std::vector<Ready> ready;
    while (!times_.empty() && times_.begin()->first <= now) {
      JobPtr job = times_.begin()->second;
      times_.erase(times_.begin());
      if (job->state == State::leased) {
        end_lease(*job->queue);
        ++expired_;
      }
      offer(job);
    }
    wake_touched(ready);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      auto it = waiting_.find(deadlines_.begin()->second);
      CHECK(it != waiting_.end());
      std::shared_ptr<Waiting> w = it->second;
      waiting_.erase(it);
      settle(*w);
      ready.push_back({std::move(w), {}});
    }
    if (!ready.empty()) {
      lock.unlock();
      tell(ready);
      lock.lock();
      continue;
    }
    next_wake_ = INT64_MAX;
    if (!times_.empty()) next_wake_ = times_.begin()->first;
    if (!deadlines_.empty()) next_wake_ = std::min(next_wake_, deadlines_.begin()->first);
    if (next_wake_ == INT64_MAX) return BackgroundLoop::kNever;
    // The times are of the kernel's clock, which may be set, and this wait is not: so the clock is
    // read again once a minute.
    return background_.steady_now() + std::min(next_wake_ - now, 60 * kSecond);
  }
  return BackgroundLoop::kNever;
}

}  // namespace pawl

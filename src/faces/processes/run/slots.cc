#include "faces/processes/run/slots.h"

#include "faces/processes/limits.h"
#include "faces/processes/state/instance.h"

namespace pawl::processes {

namespace {

constexpr Time kSlack = kRateSlackMs * kMillisecond;

bool has_slot(const Limiter& limiter, const WaitingJob& job) {
  return !job.concurrent || limiter.running < job.concurrent;
}

// When the rate lets the job begin. An even rate would let it begin at `next`.
Time ready_at(const Limiter& limiter, const WaitingJob& job) {
  if (!job.interval) return 0;
  return limiter.next - static_cast<Time>(job.burst - 1) * job.interval;
}

WaitingJob waiting_job(const LimitUse& use, const Effect& effect, Time now) {
  return {.priority = effect.priority,
          .since = now,
          .concurrent = use.concurrent,
          .burst = use.burst,
          .interval = use.interval,
          .fairness_key = effect.fairness_key};
}

}  // namespace

Result<Limiter> Slots::load(const LimitUse& use) {
  TRY(auto found, turn_.read_as<Limiter>(limiter_key(tenant_, use), decode_limiter));
  return found ? *found : Limiter{};
}

Result<WaitingJob> Slots::waiting(const std::string& effect_id) {
  TRY(auto found, turn_.read_as<WaitingJob>(waiting_key(tenant_, effect_id), decode_waiting));
  if (!found)
    return fail(Code::corrupt, "BAD_LIMITER", "job \"" + effect_id + "\" is missing in its queue");
  return *found;
}

Result<ParkedJob> Slots::parked(const std::string& effect_id) {
  TRY(auto found, turn_.read_as<ParkedJob>(parked_key(tenant_, effect_id), decode_parked));
  if (!found)
    return fail(Code::corrupt, "BAD_LIMITER", "the waiting job \"" + effect_id + "\" is missing");
  return *found;
}

Result<Bytes> Slots::parked_body(const std::string& effect_id) {
  TRY(auto found, turn_.read_as<ParkedJob>(parked_key(tenant_, effect_id), decode_parked));
  return found ? found->effect.body : Bytes();
}

Result<void> Slots::request(const LimitUse& use, Effect effect) {
  if (effect.due > turn_.now()) {
    turn_.open({.id = delay_timer_id(tenant_, effect.id),
                .to = To::clock,
                .program = std::string(kProgram),
                .tenant = tenant_,
                .due = effect.due});
    turn_.write(parked_key(tenant_, effect.id), encode(ParkedJob{use, effect}));
    return {};
  }
  TRY(Limiter limiter, load(use));
  TRY_OK(join(use, limiter, std::move(effect), false));
  save(use, limiter);
  return {};
}

// `parked`: the job's effect is in its cell already, because the job was delayed.
Result<void> Slots::join(const LimitUse& use, Limiter& limiter, Effect effect, bool parked) {
  WaitingJob job = waiting_job(use, effect, turn_.now());
  if (!limiter.waiting && has_slot(limiter, job) && ready_at(limiter, job) <= turn_.now()) {
    if (parked) turn_.erase(parked_key(tenant_, effect.id));
    run(use, limiter, job, std::move(effect));
    return {};
  }
  std::string id = effect.id;
  if (!parked) turn_.write(parked_key(tenant_, id), encode(ParkedJob{use, std::move(effect)}));
  TRY_OK(append(use, limiter, std::move(job), id));
  return admit(use, limiter);
}

Result<void> Slots::append(const LimitUse& use, Limiter& limiter, WaitingJob job,
                           const std::string& effect_id) {
  auto level = std::find_if(limiter.levels.begin(), limiter.levels.end(),
                            [&](const Level& l) { return l.priority <= job.priority; });
  if (level == limiter.levels.end() || level->priority != job.priority)
    level = limiter.levels.insert(level, {.priority = job.priority});
  const std::string name = lane_name(job.fairness_key);
  TRY(Lane lane, load_lane(use, *level, name));
  if (lane.first.empty()) {
    TRY_OK(push_lane(use, *level, name, lane));
    lane.first = effect_id;
  } else {
    TRY_OK(relink(lane.last, &WaitingJob::after, effect_id));
    job.before = lane.last;
  }
  lane.last = effect_id;
  save_lane(use, *level, name, lane);
  ++limiter.waiting;
  turn_.write(waiting_key(tenant_, effect_id), encode(job));
  return {};
}

Result<void> Slots::relink(const std::string& effect_id, std::string WaitingJob::*side,
                           const std::string& to) {
  TRY(WaitingJob job, waiting(effect_id));
  job.*side = to;
  turn_.write(waiting_key(tenant_, effect_id), encode(job));
  return {};
}

static Result<Limiter::Level*> level_of(Limiter& limiter, int64_t priority) {
  for (Limiter::Level& level : limiter.levels)
    if (level.priority == priority) return &level;
  return fail(Code::corrupt, "BAD_LIMITER", "a limiter has no queue for a job in it");
}

Result<void> Slots::unlink(const LimitUse& use, Limiter& limiter, const WaitingJob& job,
                           const std::string& effect_id) {
  TRY(Level * level, level_of(limiter, job.priority));
  const std::string name = lane_name(job.fairness_key);
  TRY(Lane lane, load_lane(use, *level, name));
  if (job.before.empty())
    lane.first = job.after;
  else
    TRY_OK(relink(job.before, &WaitingJob::after, job.after));
  if (job.after.empty())
    lane.last = job.before;
  else
    TRY_OK(relink(job.after, &WaitingJob::before, job.before));
  if (lane.first.empty()) {
    TRY_OK(pull_lane(use, *level, lane));
    erase_lane(use, *level, name);
  } else {
    save_lane(use, *level, name, lane);
  }
  if (level->first.empty()) std::erase_if(limiter.levels, [](auto& l) { return l.first.empty(); });
  --limiter.waiting;
  turn_.erase(waiting_key(tenant_, effect_id));
  turn_.erase(parked_key(tenant_, effect_id));
  return {};
}

Result<std::string> Slots::head(const LimitUse& use, const Limiter& limiter) {
  const Level& level = limiter.levels.front();
  TRY(Lane lane, load_lane(use, level, level.first));
  return lane.first;
}

Result<void> Slots::end_turn(const LimitUse& use, Limiter& limiter, const WaitingJob& job) {
  const std::string name = lane_name(job.fairness_key);
  auto level = level_of(limiter, job.priority);
  // Without other lanes, or without further jobs in its own, nothing is to be moved.
  if (!level || (*level)->first != name || (*level)->last == name) return {};
  TRY(Lane lane, load_lane(use, **level, name));
  TRY_OK(pull_lane(use, **level, lane));
  TRY_OK(push_lane(use, **level, name, lane));
  save_lane(use, **level, name, lane);
  return {};
}

Result<Lane> Slots::load_lane(const LimitUse& use, const Level& level, std::string_view name) {
  if (name == kPlainLane) return level.plain;
  TRY(auto found, turn_.read_as<Lane>(lane_key(tenant_, use, level.priority, name), decode_lane));
  return found ? *found : Lane{};
}

void Slots::save_lane(const LimitUse& use, Level& level, std::string_view name, const Lane& lane) {
  if (name == kPlainLane)
    level.plain = lane;
  else
    turn_.write(lane_key(tenant_, use, level.priority, name), encode(lane));
}

void Slots::erase_lane(const LimitUse& use, Level& level, std::string_view name) {
  if (name == kPlainLane)
    level.plain = {};
  else
    turn_.erase(lane_key(tenant_, use, level.priority, name));
}

Result<void> Slots::relink_lane(const LimitUse& use, Level& level, const std::string& name,
                                std::string Lane::*neighbour, const std::string& to) {
  TRY(Lane lane, load_lane(use, level, name));
  lane.*neighbour = to;
  save_lane(use, level, name, lane);
  return {};
}

Result<void> Slots::push_lane(const LimitUse& use, Level& level, const std::string& name,
                              Lane& lane) {
  lane.before = level.last;
  lane.after.clear();
  if (level.last.empty()) {
    level.first = name;
  } else {
    TRY_OK(relink_lane(use, level, level.last, &Lane::after, name));
  }
  level.last = name;
  return {};
}

Result<void> Slots::pull_lane(const LimitUse& use, Level& level, Lane& lane) {
  if (lane.before.empty()) {
    level.first = lane.after;
  } else {
    TRY_OK(relink_lane(use, level, lane.before, &Lane::after, lane.after));
  }
  if (lane.after.empty()) {
    level.last = lane.before;
  } else {
    TRY_OK(relink_lane(use, level, lane.after, &Lane::before, lane.before));
  }
  lane.before.clear();
  lane.after.clear();
  return {};
}

void Slots::run(const LimitUse& use, Limiter& limiter, const WaitingJob& job, Effect effect) {
  ++limiter.running;
  // A job that waited counts from the time at which it should have begun, as far as the slack goes.
  // Otherwise each timer that is late would slow the rate down.
  if (job.interval)
    limiter.next = std::max({limiter.next, job.since, turn_.now() - kSlack}) + job.interval;
  turn_.write(running_key(tenant_, use, effect.id), "\x01");
  turn_.open(std::move(effect));
}

Result<void> Slots::admit(const LimitUse& use, Limiter& limiter) {
  size_t admitted = 0, bytes = 0;
  while (limiter.waiting) {
    TRY(std::string id, head(use, limiter));
    TRY(WaitingJob job, waiting(id));
    if (!has_slot(limiter, job) || ready_at(limiter, job) > turn_.now()) return {};
    if (admitted == kAdmittedPerTurn || bytes >= kAdmittedBytes) return {};
    TRY(ParkedJob one, parked(id));
    TRY_OK(unlink(use, limiter, job, id));
    TRY_OK(end_turn(use, limiter, job));
    ++admitted;
    bytes += one.effect.body.size();
    run(use, limiter, job, std::move(one.effect));
  }
  return {};
}

Result<void> Slots::release(const LimitUse& use, const std::string& effect_id) {
  TRY(Limiter limiter, load(use));
  Key running = running_key(tenant_, use, effect_id);
  TRY(Cell runs, turn_.read(running));
  TRY(auto waits, turn_.read_as<WaitingJob>(waiting_key(tenant_, effect_id), decode_waiting));
  if (runs.exists()) {
    turn_.erase(running);
    turn_.withdraw(effect_id);
    --limiter.running;
  } else if (waits) {
    TRY_OK(unlink(use, limiter, WaitingJob(*waits), effect_id));
  } else {
    turn_.withdraw(delay_timer_id(tenant_, effect_id));
    TRY(Cell delayed, turn_.read(parked_key(tenant_, effect_id)));
    if (delayed.exists()) turn_.erase(parked_key(tenant_, effect_id));
    return {};
  }
  TRY_OK(admit(use, limiter));
  save(use, limiter);
  return {};
}

Result<void> Slots::wake(const LimiterTimer& timer) {
  if (!timer.effect_id.empty()) {
    TRY(ParkedJob job, parked(timer.effect_id));
    TRY(Limiter limiter, load(job.use));
    TRY_OK(join(job.use, limiter, std::move(job.effect), true));
    save(job.use, limiter);
    return {};
  }
  TRY(Limiter limiter, load(timer.use));
  limiter.wake = 0;
  TRY_OK(admit(timer.use, limiter));
  save(timer.use, limiter);
  return {};
}

// Writes the limiter and sets its timer: for the job at the head of the queue when only time keeps
// it, and for the end of an unused limiter.
void Slots::save(const LimitUse& use, Limiter& limiter) {
  const Time now = turn_.now();
  Time wake = 0;
  if (limiter.waiting) {
    auto first = head(use, limiter);
    auto job = first ? waiting(*first) : Result<WaitingJob>(fail(first.error()));
    // A head that may run at once was left by admit() for the next turn.
    if (job && has_slot(limiter, *job)) wake = std::max(now + 1, ready_at(limiter, *job));
  } else if (!limiter.running && limiter.next > now) {
    wake = limiter.next;
  }
  if (wake != limiter.wake) {
    if (limiter.wake) turn_.withdraw(limiter_timer_id(tenant_, use, limiter.wake));
    if (wake)
      turn_.open({.id = limiter_timer_id(tenant_, use, wake),
                  .to = To::clock,
                  .program = std::string(kProgram),
                  .tenant = tenant_,
                  .due = wake});
    limiter.wake = wake;
  }
  Key key = limiter_key(tenant_, use);
  if (!limiter.running && !limiter.waiting && !wake)
    turn_.erase(key);
  else
    turn_.write(key, encode(limiter));
}

}  // namespace pawl::processes

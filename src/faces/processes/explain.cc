// Explains one job: what it waits for, and when it may run. Read from the instance, the limiter and
// the work queue; nothing is written.

#include <deque>

#include "faces/processes/definition/steps.h"
#include "faces/processes/service.h"
#include "faces/processes/state/limiter.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

// Waiting jobs that are counted for the position in the queue, and running jobs that are listed.
constexpr size_t kCounted = 1'000, kListed = 20;

struct Words {
  json::Object json;
  void add(std::string name, json::Value value) { json.add(std::move(name), std::move(value)); }
  std::string say(std::string_view state, std::string why) {
    json::Object out;
    out.add("state", json::Value(state));
    out.add("reason", json::Value(std::move(why)));
    for (const json::Member& m : json)
      out.add(m.name, m.value);
    return json::print(json::Value(std::move(out)));
  }
};

json::Value number(size_t n) { return json::Value(static_cast<int64_t>(n)); }
std::string plural(size_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

std::string limit_name(const LimitUse& use) {
  std::string of = use.scope.starts_with('~') ? use.scope.substr(1) : use.scope;
  return "\"" + of + "\"" + (use.key.empty() ? "" : " for key \"" + use.key + "\"");
}

// The job is open to workers.
std::string explain_open(Words& words, const WorkQueue::Place& place) {
  const WorkQueue::Depth& q = place.queue;
  const std::string type = "job type \"" + q.queue + "\"";
  using State = WorkQueue::Place::State;
  if (place.state == State::leased) {
    words.add("workerId", json::Value(place.worker));
    words.add("until", json::Value(rfc3339(place.until, 6)));
    return words.say("leased",
                     "leased by worker \"" + place.worker + "\" until " + rfc3339(place.until, 3));
  }
  if (place.state == State::held) {
    words.add("mayRunAt", json::Value(rfc3339(place.until, 6)));
    return words.say("delayed", "a retry waits for its backoff until " + rfc3339(place.until, 3));
  }
  words.add("offered", number(q.offered));
  words.add("waitingPolls", number(q.waiting_polls));
  if (q.paused)
    return words.say("paused", type + " is paused: resume it with pawl job resume " + q.queue);
  if (q.waiting_polls)
    return words.say("offered", "offered: " + plural(q.waiting_polls, "poll") + " for " + type +
                                    " waits and gets the next job");
  if (q.leased)
    return words.say("offered", plural(q.offered, "job") + " of " + type +
                                    " offered, and no worker polls at this moment (" +
                                    plural(q.leased, "job") + " leased)");
  return words.say(
      "offered", plural(q.offered, "job") + " of " + type + " offered, and no worker polls for it");
}

}  // namespace

// Plays the order in which the limiter lets its jobs run, until it comes to this one.
Result<size_t> Service::waiting_position(std::string_view tenant, const LimitUse& use,
                                         const Limiter& limiter, const WaitingJob& job,
                                         std::string_view effect_id) const {
  size_t position = 1;
  for (const Limiter::Level& level : limiter.levels) {
    if (level.priority < job.priority) break;
    std::deque<std::string> heads;  // the first job of each lane, in the order of turns
    for (std::string name = level.first; !name.empty() && heads.size() <= kCounted;) {
      Lane lane = level.plain;
      if (name != kPlainLane) {
        TRY(auto found,
            read_as<Lane>(kernel_, lane_key(tenant, use, level.priority, name), decode_lane));
        lane = found ? *found : Lane{};
      }
      if (!lane.first.empty()) heads.push_back(lane.first);
      name = lane.after;
    }
    while (!heads.empty()) {
      if (heads.front() == effect_id || position > kCounted) return position;
      TRY(auto ahead,
          read_as<WaitingJob>(kernel_, waiting_key(tenant, heads.front()), decode_waiting));
      heads.pop_front();
      if (ahead && !ahead->after.empty()) heads.push_back(ahead->after);
      ++position;
    }
  }
  return position;
}

// The job waits for its limiter.
Result<std::string> Service::explain_waiting(std::string_view tenant, const LimitUse& use,
                                             const WaitingJob& job,
                                             std::string_view effect_id) const {
  TRY(auto limiter, read_as<Limiter>(kernel_, limiter_key(tenant, use), decode_limiter));
  if (!limiter)
    return fail(Code::unavailable, "CHANGED", "the job is changing at this moment: ask again");
  TRY(size_t position, waiting_position(tenant, use, *limiter, job, effect_id));
  json::Array holders;
  TRY_OK(kernel_.snapshot().scan(running_prefix(tenant, use), [&](BytesView key, const Cell&) {
    holders.push_back(json::Value(parts_of(key).back().substr(0, 26)));
    return holders.size() < kListed;
  }));
  Words words;
  words.add("limit", json::object({{"scope", use.scope}, {"key", use.key}}));
  words.add("running", number(limiter->running));
  if (use.concurrent) words.add("concurrent", number(use.concurrent));
  words.add("position", number(position));
  words.add("waiting", number(limiter->waiting));
  words.add("heldBy", json::Value(std::move(holders)));
  std::string place = "position " + std::string(position > kCounted ? "after " : "") +
                      std::to_string(position) + " of " + std::to_string(limiter->waiting);
  if (use.concurrent && limiter->running >= use.concurrent)
    return words.say("waiting-for-slot", "waits for a slot of limit " + limit_name(use) + ": " +
                                             std::to_string(limiter->running) + " of " +
                                             std::to_string(use.concurrent) + " run, " + place +
                                             " in the queue");
  // The job at the head begins at limiter->next; each job before this one takes one interval.
  Time at = limiter->next + static_cast<Time>(position) * use.interval -
            static_cast<Time>(use.burst) * use.interval;
  if (!use.interval || at <= now())
    return words.say("waiting-for-slot",
                     "waits for limit " + limit_name(use) + ": " + place + " in the queue");
  words.add("mayRunAt", json::Value(rfc3339(at, 6)));
  return words.say("waiting-for-rate", "waits for the rate of limit " + limit_name(use) + ": " +
                                           place + " in the queue, may run at " + rfc3339(at, 3));
}

// The job has no running token: it has ended.
Result<std::string> Service::explain_ended(std::string_view tenant, const Instance& instance,
                                           uint32_t job) const {
  Words words;
  words.add("instanceStatus", json::Value(status_name(instance.status)));
  TRY(std::vector<ExecutionRow> rows, history(tenant, instance.id));
  // A job's ordinal follows that of its execution.
  auto row = std::find_if(rows.begin(), rows.end(), [&](const ExecutionRow& r) {
    return r.ordinal + 1 == job && r.kind == Kind::service_task;
  });
  if (row == rows.end() || !row->ended)
    return words.say(
        "done", "the job is done; its instance is " + std::string(status_name(instance.status)));
  words.add("stepId", json::Value(row->step));
  words.add("status", json::Value(execution_name(row->status)));
  words.add("endedAt", json::Value(rfc3339(row->ended, 6)));
  return words.say("done", "the job ended at " + rfc3339(row->ended, 3) + " as " +
                               std::string(execution_name(row->status)) +
                               (row->reason.empty() ? "" : ": " + row->reason));
}

Result<std::string> Service::explain(std::string_view tenant, std::string_view job_id) const {
  TRY(FoundJob job, find_job(tenant, job_id));
  const Instance& i = *job.instance;
  const Token* token = job.token;
  if (!token) return explain_ended(tenant, i, job.ordinal);
  Words words;
  if (i.suspended)
    return words.say("suspended", i.paused
                                      ? "instance \"" + i.id + "\" is paused: resume it first"
                                      : "instance \"" + i.id + "\" has failed: retry it first");
  std::string effect_id = job_effect_id(job_id, token->tries);
  if (token->limit) {
    TRY(auto waits, read_as<WaitingJob>(kernel_, waiting_key(tenant, effect_id), decode_waiting));
    if (waits) return explain_waiting(tenant, *token->limit, *waits, effect_id);
    TRY(auto delayed, read_as<ParkedJob>(kernel_, parked_key(tenant, effect_id), decode_parked));
    if (delayed) {
      words.add("mayRunAt", json::Value(rfc3339(delayed->effect.due, 6)));
      return words.say("delayed",
                       "a retry waits for its backoff until " + rfc3339(delayed->effect.due, 3));
    }
  }
  if (auto place = work_.place_of(effect_id)) return explain_open(words, *place);
  return fail(Code::unavailable, "CHANGED", "the job is changing at this moment: ask again");
}

Result<std::vector<std::pair<std::string, size_t>>> Service::waiting_by_limit() const {
  std::map<std::string, size_t> sums;
  TRY_OK(kernel_.snapshot().scan(limiter_prefix(), [&](BytesView key, const Cell& cell) {
    std::vector<std::string> parts = parts_of(key);
    auto limiter = decode_limiter(cell.value());
    // The step is left out, so that a definition is one series.
    if (limiter && parts.size() == 5 && limiter->waiting)
      sums[parts[3].substr(0, parts[3].find('/'))] += limiter->waiting;
    return true;
  }));
  return std::vector<std::pair<std::string, size_t>>(sums.begin(), sums.end());
}

}  // namespace pawl::processes

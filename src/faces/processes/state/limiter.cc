#include "faces/processes/state/limiter.h"

#include <algorithm>

#include "base/codec.h"
#include "faces/processes/state/instance.h"

namespace pawl::processes {

namespace {
// No other timer of this program begins so: their ids begin with a ULID.
constexpr std::string_view kWake = "limit:", kDelay = "again:";
}  // namespace

template <class F, FieldsOf<Lane> T>
void fields(F& f, T& lane) {
  f.format(1);
  f(lane.first);
  f(lane.last);
  f(lane.before);
  f(lane.after);
}

template <class F, FieldsOf<WaitingJob> T>
void fields(F& f, T& job) {
  f.format(1);
  f(job.priority);
  f(job.before);
  f(job.after);
  f(job.since);
  f(job.concurrent);
  f(job.burst);
  f(job.interval);
}

Bytes encode(const Lane& lane) { return encode_fields(lane); }
Result<Lane> decode_lane(BytesView bytes) {
  return decode_fields<Lane>(bytes, "a stored lane of a limiter");
}
std::string lane_name(std::string_view fairness_key) {
  if (fairness_key.empty()) return std::string(kPlainLane);
  return "k" + std::string(fairness_key);
}

// Format 1 has no lanes but the plain one; format 2 adds them.
Bytes encode(const Limiter& limiter) {
  const bool lanes = std::any_of(
      limiter.levels.begin(), limiter.levels.end(),
      [](const Limiter::Level& l) { return l.first != kPlainLane || l.last != kPlainLane; });
  Bytes out;
  Writer w(out);
  w.u8(lanes ? 2 : 1);
  w.uint(limiter.running);
  w.uint(limiter.waiting);
  w.sint(limiter.next);
  w.sint(limiter.wake);
  w.uint(limiter.levels.size());
  for (const Limiter::Level& level : limiter.levels) {
    w.sint(level.priority);
    w.str(level.plain.first);
    w.str(level.plain.last);
    if (!lanes) continue;
    for (const std::string* text :
         {&level.first, &level.last, &level.plain.before, &level.plain.after})
      w.str(*text);
  }
  return out;
}

Result<Limiter> decode_limiter(BytesView bytes) {
  Reader r(bytes);
  Limiter limiter;
  const uint8_t format = r.u8();
  limiter.running = r.uint();
  limiter.waiting = r.uint();
  limiter.next = r.sint();
  limiter.wake = r.sint();
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    Limiter::Level& level = limiter.levels.emplace_back();
    level.priority = r.sint();
    level.plain.first = r.str();
    level.plain.last = r.str();
    level.first = level.last = kPlainLane;
    if (format != 2) continue;
    for (std::string* text : {&level.first, &level.last, &level.plain.before, &level.plain.after})
      *text = r.str();
  }
  if (!r.done() || format < 1 || format > 2)
    return fail(Code::corrupt, "BAD_BYTES", "a stored limiter cannot be read");
  return limiter;
}

// The fairness key is left out when there is none, as before it was kept.
Bytes encode(const WaitingJob& job) {
  Bytes out = encode_fields(job);
  FieldWriter writer(out);
  if (!job.fairness_key.empty()) writer(job.fairness_key);
  return out;
}
Result<WaitingJob> decode_waiting(BytesView bytes) {
  WaitingJob job;
  FieldReader reader(bytes);
  fields(reader, job);
  reader.later(job.fairness_key);
  if (!reader.complete())
    return fail(Code::corrupt, "BAD_BYTES", "a stored waiting job cannot be read");
  return job;
}

Bytes encode(const ParkedJob& job) {
  Bytes out;
  Writer w(out);
  w.u8(1);
  w.str(job.use.scope);
  w.str(job.use.key);
  w.uint(job.use.concurrent);
  w.sint(job.use.interval);
  w.uint(job.use.burst);
  w.str(encode(job.effect));
  return out;
}

Result<ParkedJob> decode_parked(BytesView bytes) {
  Reader r(bytes);
  ParkedJob job;
  uint8_t format = r.u8();
  job.use.scope = r.str();
  job.use.key = r.str();
  job.use.concurrent = static_cast<uint32_t>(r.uint());
  job.use.interval = r.sint();
  job.use.burst = static_cast<uint32_t>(r.uint());
  BytesView effect = r.str();
  if (!r.done() || format != 1)
    return fail(Code::corrupt, "BAD_PARKED_JOB", "a stored waiting job cannot be read");
  TRY(job.effect, decode_effect(effect));
  return job;
}

// Not below the tenant: the metrics read the limiters of all tenants in one scan.
Key limiter_key(std::string_view tenant, const LimitUse& use) {
  return key({kProgram, "~limit", tenant, use.scope, use.key});
}
Key limiter_prefix() { return prefix({kProgram, "~limit"}); }
Key running_key(std::string_view tenant, const LimitUse& use, std::string_view effect_id) {
  return key({kProgram, tenant, "r", use.scope, use.key, effect_id});
}
Key running_prefix(std::string_view tenant, const LimitUse& use) {
  return prefix({kProgram, tenant, "r", use.scope, use.key});
}
Key lane_key(std::string_view tenant, const LimitUse& use, int64_t priority,
             std::string_view lane) {
  return key({kProgram, tenant, "f", use.scope, use.key, std::to_string(priority), lane});
}
Key waiting_key(std::string_view tenant, std::string_view effect_id) {
  return key({kProgram, tenant, "q", effect_id});
}
Key parked_key(std::string_view tenant, std::string_view effect_id) {
  return key({kProgram, tenant, "p", effect_id});
}

// The due time makes each timer's id new, so that a timer may be replaced in the turn that it
// began.
std::string limiter_timer_id(std::string_view tenant, const LimitUse& use, Time due) {
  return std::string(kWake) + std::to_string(due) + ":" + key({tenant, use.scope, use.key});
}
std::string delay_timer_id(std::string_view tenant, std::string_view effect_id) {
  return std::string(kDelay) + std::string(effect_id) + ":" + std::string(tenant);
}

std::optional<LimiterTimer> parse_limiter_timer(std::string_view id) {
  const bool wake = id.starts_with(kWake);
  size_t colon = id.find(':', kWake.size());
  if ((!wake && !id.starts_with(kDelay)) || colon == std::string_view::npos) return std::nullopt;
  std::string_view rest = id.substr(colon + 1);
  if (!wake)
    return LimiterTimer{
        std::string(rest), {}, std::string(id.substr(kDelay.size(), colon - kDelay.size()))};
  std::vector<std::string> parts = parts_of(rest);
  if (parts.size() != 3) return std::nullopt;
  return LimiterTimer{parts[0], {.scope = parts[1], .key = parts[2]}, ""};
}

}  // namespace pawl::processes

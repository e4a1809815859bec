#include "faces/processes/state/limiter.h"

#include "base/codec.h"
#include "faces/processes/state/instance.h"

namespace pawl::processes {

namespace {
// No other timer of this program begins so: their ids begin with a ULID.
constexpr std::string_view kWake = "limit:", kDelay = "again:";
}  // namespace

template <class F, FieldsOf<Limiter::Level> T>
void fields(F& f, T& level) {
  f(level.priority);
  f(level.first);
  f(level.last);
}

template <class F, FieldsOf<Limiter> T>
void fields(F& f, T& limiter) {
  f.format(1);
  f(limiter.running);
  f(limiter.waiting);
  f(limiter.next);
  f(limiter.wake);
  f(limiter.levels);
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

Bytes encode(const Limiter& limiter) { return encode_fields(limiter); }
Result<Limiter> decode_limiter(BytesView bytes) {
  return decode_fields<Limiter>(bytes, "a stored limiter");
}
Bytes encode(const WaitingJob& job) { return encode_fields(job); }
Result<WaitingJob> decode_waiting(BytesView bytes) {
  return decode_fields<WaitingJob>(bytes, "a stored waiting job");
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

#include "faces/processes/state/job.h"

#include "base/codec.h"
#include "faces/processes/state/instance.h"

namespace pawl::processes {

template <class F, FieldsOf<Job> T>
void fields(F& f, T& job) {
  f.format(1);
  f(job.id);
  f(job.instance_id);
  f(job.execution_id);
  f(job.step_id);
  f(job.retries_left);
  f(job.created);
  f(job.variables);
  if constexpr (std::same_as<F, FieldReader>) f.later(job.attempt_timeout);
}

Bytes encode(const Job& job) {
  Bytes out = encode_fields(job, 112 + job.variables.size());
  // Left out when it is empty, as before it existed.
  if (!job.attempt_timeout.empty()) FieldWriter{out}(job.attempt_timeout);
  return out;
}
Result<Job> decode_job(BytesView bytes) { return decode_fields<Job>(bytes, "a stored job"); }

Time created_at(const Effect& job) {
  if (job.program != kProgram) return 0;
  Reader r(job.body);
  if (r.u8() != 1) return 0;
  // id, instance, execution, step; then the retries. The order is that of fields() above.
  for (int texts = 0; texts < 4; ++texts)
    r.str();
  r.uint();
  return r.sint();
}

std::string job_effect_id(std::string_view job_id, uint32_t tries) {
  std::string out(job_id);
  if (tries) out += "." + std::to_string(tries);
  return out;
}

std::string timer_effect_id(std::string_view tenant, std::string_view execution_id,
                            uint32_t index) {
  return std::string(execution_id) + ":" + std::to_string(index) + ":" + std::string(tenant);
}

Result<TimerId> parse_timer_effect_id(std::string_view id) {
  // From the front: execution ids have no colon, a tenant may.
  size_t first = id.find(':'),
         second = first == std::string_view::npos ? first : id.find(':', first + 1);
  if (second == std::string_view::npos)
    return fail(Code::corrupt, "BAD_TIMER", "a timer's id cannot be read");
  TimerId out{std::string(id.substr(second + 1)), std::string(id.substr(0, first)), 0};
  std::from_chars(id.data() + first + 1, id.data() + second, out.index);
  return out;
}

static constexpr std::string_view kAttempt = "attempt:";

static constexpr std::string_view kRetain = "retain:";

std::string retention_timer_id(std::string_view tenant, std::string_view instance_id,
                               uint8_t status) {
  return std::string(kRetain) + timer_effect_id(tenant, instance_id, status);
}

std::optional<RetentionId> parse_retention_timer(std::string_view id) {
  if (!id.starts_with(kRetain)) return std::nullopt;
  auto timer = parse_timer_effect_id(id.substr(kRetain.size()));
  if (!timer) return std::nullopt;
  return RetentionId{std::move(timer->tenant), std::move(timer->execution_id),
                     static_cast<uint8_t>(timer->index)};
}

std::string attempt_timer_id(std::string_view tenant, std::string_view job_id, uint32_t lease) {
  return std::string(kAttempt) + timer_effect_id(tenant, job_id, lease);
}

std::optional<AttemptId> parse_attempt_timer(std::string_view id) {
  if (!id.starts_with(kAttempt)) return std::nullopt;
  auto timer = parse_timer_effect_id(id.substr(kAttempt.size()));
  if (!timer) return std::nullopt;
  return AttemptId{std::move(timer->tenant), std::move(timer->execution_id), timer->index};
}

}  // namespace pawl::processes

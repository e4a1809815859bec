#include "faces/processes/state/job.h"

namespace pawl::processes {

Bytes encode(const Job& job) {
  Bytes out;
  out.reserve(112 + job.variables.size());
  Writer w(out);
  w.u8(1);
  w.str(job.id);
  w.str(job.instance_id);
  w.str(job.execution_id);
  w.str(job.step_id);
  w.uint(job.retries_left);
  w.sint(job.created);
  w.str(job.variables);
  return out;
}

Result<Job> decode_job(BytesView bytes) {
  Reader r(bytes);
  Job job;
  uint8_t format = r.u8();
  job.id = r.str();
  job.instance_id = r.str();
  job.execution_id = r.str();
  job.step_id = r.str();
  job.retries_left = static_cast<uint32_t>(r.uint());
  job.created = r.sint();
  job.variables = r.str();
  if (!r.done() || format != 1)
    return fail(Code::corrupt, "BAD_JOB", "a stored job cannot be read");
  return job;
}

Time born(const Effect& job) {
  Reader r(job.body);
  if (r.u8() != 1) return 0;
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
  size_t first = id.find(':'),
         second = first == std::string_view::npos ? first : id.find(':', first + 1);
  if (second == std::string_view::npos)
    return fail(Code::corrupt, "BAD_TIMER", "a timer's id cannot be read");
  TimerId out{std::string(id.substr(second + 1)), std::string(id.substr(0, first)), 0};
  std::from_chars(id.data() + first + 1, id.data() + second, out.index);
  return out;
}

}  // namespace pawl::processes

#pragma once
// A job is a SERVICE_TASK's effect to a worker: who asks, and the variables as they were when the
// step began. A poll hands out what stands here without parsing the variables.

#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "kernel/effect.h"

namespace pawl::processes {

struct Job {
  std::string id;
  std::string instance_id;
  std::string execution_id;
  std::string step_id;
  uint32_t retries_left = 0;
  Time created = 0;
  std::string variables;  // JSON text
};

Bytes encode(const Job& job);
Result<Job> decode_job(BytesView bytes);
// When the job of this effect was made, without reading the rest of it; 0 when it cannot be read.
Time born(const Effect& job);

// The effect that carries a job: another one for each attempt, since an effect settles once.
std::string job_effect_id(std::string_view job_id, uint32_t tries);

// The effect of a boundary timer. The clock's receipt holds nothing but this id.
std::string timer_effect_id(std::string_view tenant, std::string_view execution_id, uint32_t index);
struct TimerId {
  std::string tenant, execution_id;
  uint32_t index;
};
Result<TimerId> parse_timer_effect_id(std::string_view id);

}  // namespace pawl::processes

#pragma once
// A job is the effect of a SERVICE_TASK to a worker, with the variables as they were when the step
// began. A poll hands it out without parsing the variables.

#include <optional>
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
  // The step's attemptTimeout, which begins when a worker takes the job; empty: none.
  std::string attempt_timeout{};
};

Bytes encode(const Job& job);
Result<Job> decode_job(BytesView bytes);
// When the job of this effect was created; 0 when it cannot be read. Skips the other fields.
Time created_at(const Effect& job);

// The id of the effect that carries a job. Each attempt has its own effect, since an effect settles
// once.
std::string job_effect_id(std::string_view job_id, uint32_t tries);

// The id of a boundary timer's effect. It is all that the clock's receipt contains.
std::string timer_effect_id(std::string_view tenant, std::string_view execution_id, uint32_t index);
struct TimerId {
  std::string tenant, execution_id;
  uint32_t index;
};
Result<TimerId> parse_timer_effect_id(std::string_view id);

// The id of the timer after which an instance that ended with this status is forgotten.
std::string retention_timer_id(std::string_view tenant, std::string_view instance_id,
                               uint8_t status);
struct RetentionId {
  std::string tenant, instance_id;
  uint8_t status;
};
// Nothing when it is the id of another effect.
std::optional<RetentionId> parse_retention_timer(std::string_view id);

// The id of the timer of one attempt. `lease` counts how often the job was taken.
std::string attempt_timer_id(std::string_view tenant, std::string_view job_id, uint32_t lease);
struct AttemptId {
  std::string tenant, job_id;
  uint32_t lease;
};
// Nothing when it is the id of another effect.
std::optional<AttemptId> parse_attempt_timer(std::string_view id);

}  // namespace pawl::processes

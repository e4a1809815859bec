#pragma once
// The cells of a limiter: one for each tenant, scope and key that has jobs. A job under a limit
// either runs (its effect is open to workers), or waits in the limiter's queue, or is delayed (its
// retry is not due). The queue is a linked list of cells, so that a turn writes a few small cells
// whatever its length.

#include "faces/processes/definition/limit.h"
#include "kernel/effect.h"

namespace pawl::processes {

struct Limiter {
  uint64_t running = 0, waiting = 0;
  // When the next job may begin at an even rate. A burst may begin earlier.
  Time next = 0;
  Time wake = 0;  // due time of the open timer; 0: none
  // The queues by priority, the highest first. Each has at least one job.
  struct Level {
    int64_t priority = 0;
    std::string first, last;  // effect ids
  };
  std::vector<Level> levels;
};
Bytes encode(const Limiter& limiter);
Result<Limiter> decode_limiter(BytesView bytes);

// A waiting job, as a member of its limiter's queue.
struct WaitingJob {
  int64_t priority = 0;
  std::string before, after;  // effect ids of its neighbours; empty at the ends
  Time since = 0;             // when it joined the queue
  uint32_t concurrent = 0, burst = 1;
  Time interval = 0;
};
Bytes encode(const WaitingJob& job);
Result<WaitingJob> decode_waiting(BytesView bytes);

// A waiting or delayed job's effect, to be opened when the job may run.
struct ParkedJob {
  LimitUse use;
  Effect effect;
};
Bytes encode(const ParkedJob& job);
Result<ParkedJob> decode_parked(BytesView bytes);

Key limiter_key(std::string_view tenant, const LimitUse& use);
Key limiter_prefix();  // of all tenants
Key running_key(std::string_view tenant, const LimitUse& use, std::string_view effect_id);
Key running_prefix(std::string_view tenant, const LimitUse& use);
Key waiting_key(std::string_view tenant, std::string_view effect_id);
Key parked_key(std::string_view tenant, std::string_view effect_id);

// Ids of the two timers. The clock's receipt contains nothing else.
std::string limiter_timer_id(std::string_view tenant, const LimitUse& use, Time due);
std::string delay_timer_id(std::string_view tenant, std::string_view effect_id);
struct LimiterTimer {
  std::string tenant;
  LimitUse use;           // scope and key; of a limiter's timer
  std::string effect_id;  // of a delayed job; empty for a limiter's timer
};
// Nothing when the id is that of another timer.
std::optional<LimiterTimer> parse_limiter_timer(std::string_view id);

}  // namespace pawl::processes

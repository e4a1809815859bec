#pragma once
// The cells of a limiter: one for each tenant, scope and key that has jobs. A job under a limit
// either runs (its effect is open to workers), or waits in the limiter's queue, or is delayed (its
// retry is not due). The queue has a level for each priority, a level has a lane for each fairness
// key, and a lane has its jobs, the oldest first. The lanes of a level are served in turn. Lanes
// and jobs are linked lists of cells, so that a turn writes a few small cells whatever their
// number.

#include "faces/processes/definition/limit.h"
#include "kernel/effect.h"

namespace pawl::processes {

// The jobs of one level that have the same fairness key. Lanes are named by lane_name().
struct Lane {
  std::string first{}, last{};    // effect ids of its jobs
  std::string before{}, after{};  // its neighbours in the order of turns; empty at the ends
};
Bytes encode(const Lane& lane);
Result<Lane> decode_lane(BytesView bytes);
// The name of the lane of the jobs without a fairness key. It is kept in the level itself.
inline constexpr std::string_view kPlainLane = "-";
std::string lane_name(std::string_view fairness_key);

struct Limiter {
  uint64_t running = 0, waiting = 0;
  // When the next job may begin at an even rate. A burst may begin earlier.
  Time next = 0;
  Time wake = 0;  // due time of the open timer; 0: none
  // The queues by priority, the highest first. Each has at least one job.
  struct Level {
    int64_t priority = 0;
    std::string first{}, last{};  // the lane whose turn is next, and the one whose turn is last
    Lane plain{};
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
  std::string fairness_key{};  // names its lane
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
Key lane_key(std::string_view tenant, const LimitUse& use, int64_t priority, std::string_view lane);
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

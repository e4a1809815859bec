#pragma once
// Slots let the jobs of a limited step run: at most `concurrent` at a time and `rate` in a unit of
// time, for each key. They work on the cells of the limiters (state/limiter.h) inside the turn that
// begins or ends a job, so a crash cannot lose or leak a slot.

#include "faces/processes/state/limiter.h"
#include "kernel/turn.h"

namespace pawl::processes {

class Slots {
 public:
  Slots(Turn& turn, std::string tenant) : turn_(turn), tenant_(std::move(tenant)) {}

  // Opens the job's effect when its limit allows it. Otherwise the job waits, and a later turn
  // opens it: the one that ends another job of the limiter, or that of a timer. A job whose effect
  // is due later joins the queue then.
  Result<void> request(const LimitUse& use, Effect effect);
  // The job has ended, wherever it is: its effect is withdrawn, or it leaves the queue.
  Result<void> release(const LimitUse& use, const std::string& effect_id);
  // A timer of a limiter or of a delayed job is due.
  Result<void> wake(const LimiterTimer& timer);
  // The body of a waiting or delayed job; empty when there is none.
  Result<Bytes> parked_body(const std::string& effect_id);

 private:
  Result<Limiter> load(const LimitUse& use);
  void save(const LimitUse& use, Limiter& limiter);
  Result<void> join(const LimitUse& use, Limiter& limiter, Effect effect, bool parked);
  // Puts the job at the end of its lane, and removes a job from its lane.
  Result<void> append(const LimitUse& use, Limiter& limiter, WaitingJob job,
                      const std::string& effect_id);
  Result<void> unlink(const LimitUse& use, Limiter& limiter, const WaitingJob& job,
                      const std::string& effect_id);
  // The job that is served next: the first one of the lane whose turn it is.
  Result<std::string> head(const LimitUse& use, const Limiter& limiter);
  // The lane of this job has had its turn.
  Result<void> end_turn(const LimitUse& use, Limiter& limiter, const WaitingJob& job);
  // Lanes of a level. A lane that does not exist is loaded as an empty one.
  using Level = Limiter::Level;
  Result<Lane> load_lane(const LimitUse& use, const Level& level, std::string_view name);
  void save_lane(const LimitUse& use, Level& level, std::string_view name, const Lane& lane);
  void erase_lane(const LimitUse& use, Level& level, std::string_view name);
  // Puts the lane last in the order of turns, and takes it out of that order. The caller saves it.
  // Gives the lane another neighbour on one side.
  Result<void> relink_lane(const LimitUse& use, Level& level, const std::string& name,
                           std::string Lane::*neighbour, const std::string& to);
  Result<void> push_lane(const LimitUse& use, Level& level, const std::string& name, Lane& lane);
  Result<void> pull_lane(const LimitUse& use, Level& level, Lane& lane);
  Result<void> relink(const std::string& effect_id, std::string WaitingJob::*side,
                      const std::string& to);
  // Lets the jobs at the head of the queue run that may.
  Result<void> admit(const LimitUse& use, Limiter& limiter);
  void run(const LimitUse& use, Limiter& limiter, const WaitingJob& job, Effect effect);
  Result<WaitingJob> waiting(const std::string& effect_id);
  Result<ParkedJob> parked(const std::string& effect_id);

  Turn& turn_;
  const std::string tenant_;
};

}  // namespace pawl::processes

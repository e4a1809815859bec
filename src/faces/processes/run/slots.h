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
  Result<void> append(Limiter& limiter, WaitingJob job, const std::string& effect_id);
  Result<void> unlink(Limiter& limiter, const WaitingJob& job, const std::string& effect_id);
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

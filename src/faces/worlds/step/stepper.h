#pragma once
// Stepper works off the queued deliveries, one per cell in turn, until none is left or the turn's
// budget is spent. In one step a cell's state and one event go into its module; state, events and
// effects come out. The output is checked as a whole and only then written. Output that does not
// pass becomes a `step_failed` record.

#include "faces/worlds/step/event_router.h"
#include "faces/worlds/step/intents.h"

namespace pawl::worlds {

class InternalEffects;

class Stepper {
 public:
  Stepper(WorldTurn& turn, EventRouter& router, Intents& intents, InternalEffects& internal)
      : turn_(turn), router_(router), intents_(intents), internal_(internal) {}

  Result<void> drain();        // within the turn's budget
  Result<void> drain_fully();  // in this turn, whatever it takes; then starts the budget anew

 private:
  struct StagedStep;  // a step's output that passed every check

  Result<void> step(Delivery item);
  Result<Bytes> call(const Delivery& item, const CellEdit& cell);
  Result<void> check_artifact(const Module& module) const;
  Result<StagedStep> stage(const Delivery& item, const StepOutput& output) const;
  Result<void> stage_state(const Workflow& workflow, const StepOutput& output,
                           StagedStep& out) const;
  Result<void> stage_events(const StepOutput& output, StagedStep& out) const;
  Result<void> commit(const Delivery& item, CellEdit cell, StagedStep staged);
  Result<void> fail_step(const Delivery& item, CellEdit cell, const Error& why);

  WorldTurn& turn_;
  EventRouter& router_;
  Intents& intents_;
  InternalEffects& internal_;
};

}  // namespace pawl::worlds

#pragma once
// The parts of an engine: shard, clock, and the lifecycle program that runs on them.

#include "faces/lifecycle/read/reads.h"
#include "faces/lifecycle/read/watch_hub.h"
#include "faces/lifecycle/run/program.h"
#include "pawl/engine.h"
#include "runtime/clock.h"
#include "runtime/shard.h"

namespace pawl {

struct Engine::Parts {
  EngineOptions options;
  lifecycle::Program program;
  std::unique_ptr<Shard> shard;
  std::unique_ptr<Clock> clock;
  // Shared with subscriptions, which may outlive the engine.
  std::shared_ptr<lifecycle::WatchHub> hub;

  // Stops the parts in the order in which they feed each other: clock, hub, shard.
  ~Parts();
  // The application itself is trusted, so its writes have the role of an operator.
  Caller caller() const { return {options.tenant, options.user, "operator"}; }
};

}  // namespace pawl

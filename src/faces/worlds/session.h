#pragma once
// WorldSession is one world inside one turn, with the parts that act on it.
//
//   WorldSession world(turn, world_id, runtime);
//   TRY_OK(world.turn.open());
//   TRY_OK(world.ingress.accept_receipt(...));
//   TRY_OK(world.turn.close());

#include "faces/worlds/snapshot/replay.h"
#include "faces/worlds/step/internal_effects.h"

namespace pawl::worlds {

class WorldSession {
 public:
  WorldSession(Turn& kernel_turn, WorldId world_id, const WorldRuntime& runtime)
      : turn(kernel_turn, std::move(world_id), runtime) {}
  WorldSession(const WorldSession&) = delete;
  WorldSession& operator=(const WorldSession&) = delete;

  // Makes a new world with its first snapshot.
  Result<void> create(World world, const Authored& air);

  // The parts hold references to each other. The stepper answers internal effects, and these may
  // run steps of their own in a shadow run.
  WorldTurn turn;
  EventRouter router{turn};
  Intents intents{turn};
  Settlement settlement{turn, intents};
  Governance governance{turn};
  Stepper stepper{turn, router, intents, internal};
  Ingress ingress{turn, router, settlement, stepper};
  Shadow shadow{turn, governance, ingress, stepper};
  InternalEffects internal{turn, settlement, governance, shadow};
  Snapshots snapshots{turn, stepper};
  Replay replay{turn, ingress, stepper, governance, shadow, snapshots};
};

}  // namespace pawl::worlds

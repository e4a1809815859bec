#pragma once
// Replay runs the recorded journal again, from the world's height on. Only inputs are run (events,
// receipts, frames, governance, snapshots); the records that follow from them are made again. Every
// record that it makes must be the one recorded; a world that disagrees does not open.

#include "faces/worlds/govern/shadow.h"
#include "faces/worlds/snapshot/snapshots.h"

namespace pawl::worlds {

class Replay {
 public:
  Replay(WorldTurn& turn, Ingress& ingress, Stepper& stepper, Governance& governance,
         Shadow& shadow, Snapshots& snapshots)
      : turn_(turn),
        ingress_(ingress),
        stepper_(stepper),
        governance_(governance),
        shadow_(shadow),
        snapshots_(snapshots) {}

  // Runs up to a height, or to the last input before it. WorldTurn::recorded must be set.
  Result<void> run(uint64_t until);

 private:
  Result<void> replay_input(const cbor::Value& record);
  Result<void> replay_event(const cbor::Value& record);
  Result<void> replay_custom(const cbor::Value& record);
  Result<void> replay_apply();
  Result<void> replay_governance(const cbor::Value& record);
  Result<cbor::Value> next_record() const;

  WorldTurn& turn_;
  Ingress& ingress_;
  Stepper& stepper_;
  Governance& governance_;
  Shadow& shadow_;
  Snapshots& snapshots_;
};

}  // namespace pawl::worlds

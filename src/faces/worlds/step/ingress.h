#pragma once
// Ingress takes the inputs of a world: events, receipts, stream frames and timers. Each input is
// worked off at once, within the turn's budget. An input that is refused leaves no trace. Inputs
// are refused with `exhausted` while deliveries of a former input wait.

#include "faces/worlds/step/settlement.h"
#include "faces/worlds/step/stepper.h"
#include "faces/worlds/step/stream_frames.h"

namespace pawl::worlds {

// No open intent has this hash.
inline constexpr Reason kUnknownReceipt{"receipt.unknown"};

class Ingress {
 public:
  Ingress(WorldTurn& turn, EventRouter& router, Settlement& settlement, Stepper& stepper)
      : turn_(turn), router_(router), settlement_(settlement), stepper_(stepper), frames_(turn) {}

  Result<AcceptedEvent> accept_event(Event event);
  Result<void> accept_receipt(IntentReceipt receipt);
  Result<bool> accept_frame(const StreamFrame& frame);  // false: dropped
  Result<void> fire_timer(BytesView intent);

 private:
  WorldTurn& turn_;
  EventRouter& router_;
  Settlement& settlement_;
  Stepper& stepper_;
  StreamFrames frames_;
};

std::unexpected<Error> unknown_receipt(BytesView intent);

}  // namespace pawl::worlds

#pragma once
// StreamFrames takes the frames of an open intent. A frame is progress, not the answer: it is
// queued for the cell, and the intent stays open. A frame that does not belong to an open intent is
// dropped, with a record that says why.

#include "faces/worlds/step/world_turn.h"

namespace pawl::worlds {

class StreamFrames {
 public:
  explicit StreamFrames(WorldTurn& turn) : turn_(turn) {}

  Result<bool> take(const StreamFrame& frame);  // false: dropped

 private:
  Result<bool> drop(const StreamFrame& frame, std::string_view reason, std::string_view message);
  Result<Event> frame_event(const Workflow& workflow, const PendingIntent& intent,
                            const StreamFrame& frame) const;
  Result<void> record_gap(const PendingIntent& intent, const StreamFrame& frame,
                          uint64_t expected_seq);
  Result<Moment> record(const PendingIntent& intent, const StreamFrame& frame);

  WorldTurn& turn_;
};

}  // namespace pawl::worlds

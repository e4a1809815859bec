#pragma once
// EventRouter finds the cells that an event reaches. `prepare` makes the event canonical and tries
// every route of the manifest; only when all of them fit does `admit` record the event and queue
// its deliveries.

#include "faces/worlds/step/world_turn.h"

namespace pawl::worlds {

// The event, as it was given, can never be taken: a schema that is reserved for receipts.
inline constexpr Reason kForgedEvent{"invalid_request"};

// An event that passed every check, with its deliveries.
struct PreparedEvent {
  Event event;
  std::vector<std::pair<const Workflow*, Event>> deliveries{};
};

struct AcceptedEvent {
  std::string event_hash;
  uint64_t height = 0;
};

class EventRouter {
 public:
  explicit EventRouter(WorldTurn& turn) : turn_(turn) {}

  Result<PreparedEvent> prepare(Event event) const;
  Result<AcceptedEvent> admit(PreparedEvent prepared);

 private:
  Result<Event> delivery(const Binding& binding, const Event& event) const;
  Result<Bytes> key_of(const Binding& binding, const Event& event, BytesView value) const;

  WorldTurn& turn_;
};

}  // namespace pawl::worlds

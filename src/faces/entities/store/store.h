#pragma once
// Saving and removing one entity within a turn, with everything that hangs on it: unique values,
// index entries, armed timers, the counts.

#include "faces/entities/audit/audit.h"
#include "faces/entities/flow/workflow.h"
#include "faces/entities/model/model.h"
#include "faces/entities/store/entity.h"

namespace pawl::entities {

// An entity with the bytes that its view points into. Entities have no decoded form beside their
// cells: very many are kept in memory, and each would be a handful of blocks more.
struct Found {
  Cell cell{};
  EntityView view{};
  bool exists() const { return cell.exists(); }
};

// In this tenant.
Result<Found> find_entity(Turn& turn, std::string_view tenant, std::string_view id);
Error entity_not_found(std::string_view id);

// Whether the turn may already have the entity: one that was just made need not be looked for.
enum class Was : uint8_t { unknown, nowhere };

// Writes the cell only: what callbacks of the same transaction should see before it is saved.
Result<void> put_entity(Turn& turn, std::string_view tenant, const Entity& entity,
                        Was was = Was::unknown);

// Which of the unique values of its old document an entity holds: each of them, or those that were
// free.
enum class Held : uint8_t { all, free };

// Writes it for good. Fails UNIQUE_VIOLATION when another entity holds one of its values.
Result<void> save_entity(Turn& turn, std::string_view tenant, const Model& model,
                         const Entity& entity, std::string_view old_data, Held held,
                         Was was = Was::unknown);
Result<void> claim_unique(Turn& turn, std::string_view tenant, const Model& model,
                          std::string_view id, std::string_view data, std::string_view old_data,
                          Held held = Held::all);
// For a document that is not saved yet and may still change: takes what is free and fails for
// nothing.
Result<void> claim_free(Turn& turn, std::string_view tenant, const Model& model,
                        std::string_view id, std::string_view data, std::string_view old_data);
Result<void> remove_entity(Turn& turn, std::string_view tenant, const Model& model,
                           const EntityView& entity, std::string_view tx);

// Gives all that this transaction has saved and noted the time of this input, at the end of one
// that has waited: what it did first has not been there before the rest.
void stamp_together(Turn& turn, std::string_view tenant, std::string_view tx);

// When a scheduled transition fires, as a member said.
struct Timing {
  std::string transition;
  Time at = 0;
  Time expires = 0;  // 0: never
};
// From a member's answer: {"resultKind", "result"}. SCHEDULE_FUNCTION_INVALID_RESULT when it is no
// schedule.
Result<Timing> read_timing(const std::string& transition, std::string_view answer, Time now);

// Withdraws the timers of the state it was in and arms those of the state it is in.
void rearm(Turn& turn, std::string_view tenant, const Workflow* flow,
           const std::vector<Timing>& timings, Entity& entity, std::vector<Event>& events);

struct Due {
  std::string tenant, entity, transition;
  Time at = 0;
  Time expires = 0;  // 0: never
};
// A timer that comes this much after its expiry is still in time: no clock is better than that.
inline constexpr Time kTimerGrace = 100 * kMillisecond;
std::string timer_id(const Due& due, std::string_view tx);
Result<Due> parse_timer_id(std::string_view id);

// The index cell of an entity that is there, by the indexes that its model has now; and those of
// all that this turn has written of the model.
void index_now(Turn& turn, std::string_view tenant, const Model& model, const EntityView& entity);
void index_again(Turn& turn, std::string_view tenant, const Model& model);
// The index cell of a document: path and values, for the view to make rows of.
Bytes encode_indexed(const Model& model, std::string_view data);
struct Indexed {
  std::string_view model;
  int32_t version = 0;
  std::vector<std::pair<std::string_view, std::string_view>> entries;  // path, value
};
bool decode_indexed(BytesView bytes, Indexed& out);

}  // namespace pawl::entities

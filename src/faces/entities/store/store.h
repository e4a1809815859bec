#pragma once
// Saves and removes one entity within a turn, together with everything that belongs to it: unique
// values, index entries, armed timers, counts.

#include "faces/entities/audit/audit.h"
#include "faces/entities/flow/workflow.h"
#include "faces/entities/model/model.h"
#include "faces/entities/store/entity.h"

namespace pawl::entities {

// An entity's cell and a view into its bytes. There is no decoded form of an entity in the cell
// cache: the cache holds very many entities, and a decoded one would cost several allocations.
struct StoredEntity {
  Cell cell{};
  EntityView view{};
  bool exists() const { return cell.exists(); }
};

Result<StoredEntity> find_entity(Turn& turn, std::string_view tenant, std::string_view id);
inline constexpr Reason kEntityNotFound{"ENTITY_NOT_FOUND"};
Error entity_not_found(std::string_view id);

// Whether an older version of the entity may exist. `no`, for an entity that was just created,
// saves a lookup.
enum class StoredBefore : uint8_t { unknown, no };

// Writes only the cell, so that callbacks of the same transaction see the entity before it is
// saved.
Result<void> put_entity(Turn& turn, std::string_view tenant, const Entity& entity,
                        StoredBefore stored_before = StoredBefore::unknown);

// Which unique values of its old document an entity holds: all of them, or only those that no other
// entity held (see claim_free).
enum class ClaimedValues : uint8_t { all, free_only };

// Saves the entity. Fails with UNIQUE_VIOLATION when another entity holds one of its unique values.
Result<void> save_entity(Turn& turn, std::string_view tenant, const Model& model,
                         const Entity& entity, std::string_view old_data, ClaimedValues claimed,
                         StoredBefore stored_before = StoredBefore::unknown);
Result<void> claim_unique(Turn& turn, std::string_view tenant, const Model& model,
                          std::string_view id, std::string_view data, std::string_view old_data,
                          ClaimedValues claimed = ClaimedValues::all);
// Claims the unique values that are free and never fails because of the others. For a document that
// is not saved yet and may still change.
Result<void> claim_free(Turn& turn, std::string_view tenant, const Model& model,
                        std::string_view id, std::string_view data, std::string_view old_data);
Result<void> remove_entity(Turn& turn, std::string_view tenant, const Model& model,
                           const EntityView& entity, std::string_view tx);

// Gives everything that this transaction saved and noted the time of the current input. Called at
// the end of a transaction that has waited: all of its writes become visible at one time.
void set_commit_time(Turn& turn, std::string_view tenant, std::string_view tx);

// The time of a scheduled transition, as a member chose it.
struct Timing {
  std::string transition;
  Time at = 0;
  Time expires = 0;  // 0: never
};
// Reads a member's answer {"resultKind", "result"}. Fails with SCHEDULE_FUNCTION_INVALID_RESULT
// when the answer is not a schedule.
Result<Timing> read_timing(const std::string& transition, std::string_view answer, Time now);

// Withdraws the timers of the entity's old state and arms those of its current state.
void rearm_timers(Turn& turn, std::string_view tenant, const Workflow* flow,
                  const std::vector<Timing>& timings, Entity& entity, std::vector<Event>& events);

// The parts of the id of a timer effect.
struct TimerId {
  std::string tenant;
  std::string entity;
  std::string transition;
  Time at = 0;
  Time expires = 0;  // 0: never
};
// A timer that fires at most this long after its expiry still counts as in time: clocks are not
// more precise than that.
inline constexpr Time kTimerGrace = 100 * kMillisecond;
std::string encode_timer_id(const TimerId& timer, std::string_view tx);
Result<TimerId> parse_timer_id(std::string_view id);

// Writes the index cell of an existing entity, according to the current indexes of its model.
void write_index_cell(Turn& turn, std::string_view tenant, const Model& model,
                      const EntityView& entity);
// Writes the index cells of all entities of the model that this turn has written.
void rewrite_index_cells(Turn& turn, std::string_view tenant, const Model& model);
// The index cell of a document: paths and values, from which the view makes rows.
Bytes encode_indexed(const Model& model, std::string_view data);
struct Indexed {
  struct Entry {
    std::string_view path;
    std::string_view value;
  };
  std::string_view model;
  int32_t version = 0;
  std::vector<Entry> entries;
};
bool decode_indexed(BytesView bytes, Indexed& out);

}  // namespace pawl::entities

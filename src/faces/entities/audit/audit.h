#pragma once
// The audit trail of an entity: what the machine did in one transaction, and the change that came
// of it. It is noted in the frame that holds the write, so there is no event without its write.

#include <optional>
#include <string>
#include <vector>

#include "kernel/turn.h"

namespace pawl::entities {

enum class EventKind : uint8_t {
  start,
  finish,
  cancel,
  force_success,
  workflow_found,
  workflow_not_found,
  workflow_skip,
  transition_make,
  transition_not_found,
  transition_not_match,
  pause,
  process_result,
  transition_aborted,
  schedule_arm,
  schedule_fire,
  schedule_expire,
  schedule_cancel,
};
std::string_view name_of(EventKind kind);
std::string_view meaning_of(EventKind kind);

struct Event {
  EventKind kind;
  std::string state;    // before the step; empty for none
  std::string details;  // empty: what the kind always means
  std::string data;     // a JSON object, or empty for null
};

enum class ChangeKind : uint8_t { none, created, updated, deleted };
std::string_view name_of(ChangeKind kind);

// One note: the events of one entity in one turn.
struct Trail {
  std::string tenant;
  std::string entity;
  std::string tx;  // under which the events are filed
  Time now = 0;
  ChangeKind change = ChangeKind::none;
  std::string change_tx;  // of the change; differs from tx after a dispatch between transactions
  std::string user;
  std::vector<Event> events;
};
Bytes encode(const Trail& trail);
Result<Trail> decode_trail(BytesView bytes);

// One note: an entity came into a state or left it. What the counts are made of.
struct Move {
  std::string tenant;
  std::string model;
  int32_t version = 0;
  std::string before;  // empty: it did not exist
  std::string after;   // empty: it is deleted
  bool existed = false, exists = false;
};
// A state that is not there: the entity did not exist before, or does not after.
Bytes encode_move(std::string_view tenant, std::string_view model, int32_t version,
                  std::optional<std::string_view> before, std::optional<std::string_view> after);
Result<Move> decode_move(BytesView bytes);

// Several notes as one answer of a verb, and back.
Bytes pack_notes(const std::vector<Bytes>& notes);
Result<std::vector<BytesView>> unpack_notes(BytesView packed);

// The first byte of a note says which it is.
inline constexpr char kTrailNote = 'A';
inline constexpr char kMoveNote = 'M';

}  // namespace pawl::entities

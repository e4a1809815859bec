#pragma once
// The audit trail of an entity: what the machine did in one transaction, and the change that it
// made. It is a note in the frame that holds the write, so there is no event without its write.

#include <optional>
#include <string>
#include <vector>

#include "kernel/turn.h"

namespace pawl::entities {

// The steps of the state machine that the audit trail records. The numbers are in journals.
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
std::string_view name_of(EventKind kind);     // as in the API: "STATE_MACHINE_START"
std::string_view meaning_of(EventKind kind);  // the default text of the details

// One step of the state machine.
struct Event {
  EventKind kind;
  std::string state;    // the state before the step; empty: none
  std::string details;  // empty: the meaning of the kind
  std::string data;     // a JSON object; empty: null
};

enum class ChangeKind : uint8_t { none, created, updated, deleted };
std::string_view name_of(ChangeKind kind);

// A note with the events of one entity in one turn.
struct Trail {
  std::string tenant;
  std::string entity;
  std::string tx;  // the transaction that lists the events
  Time now = 0;
  ChangeKind change = ChangeKind::none;
  std::string change_tx;  // the transaction of the change; the second one after a dispatch
  std::string user;
  std::vector<Event> events;
};
Bytes encode(const Trail& trail);
Result<Trail> decode_trail(BytesView bytes);

// A note that an entity entered or left a state, from which the counts are made. The texts of a
// decoded note point into its bytes.
struct StateChange {
  std::string_view tenant;
  std::string_view model;
  int32_t version = 0;
  std::optional<std::string_view> before{};  // empty: the entity did not exist
  std::optional<std::string_view> after{};   // empty: the entity is deleted
};
Bytes encode(const StateChange& change);
Result<StateChange> decode_state_change(BytesView bytes);

// Packs several notes into the answer of one verb.
Bytes pack_notes(const std::vector<Bytes>& notes);
Result<std::vector<BytesView>> unpack_notes(BytesView packed);

// The first byte of a note tells its kind.
inline constexpr char kTrailNote = 'A';
inline constexpr char kStateChangeNote = 'M';

}  // namespace pawl::entities

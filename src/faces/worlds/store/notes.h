#pragma once
// A note is what a kernel frame keeps of a record: the record itself or, for an event, only the
// parts that differ between events. The view keeps notes as rows; record_of() rebuilds the record.

#include <functional>

#include "faces/worlds/store/records.h"
#include "kernel/program.h"

namespace pawl::worlds {

// Pointers to a record: a `kind` of keys.h, and the thing of that kind.
using Pointers = std::vector<std::pair<std::string_view, Bytes>>;

Bytes encode_note(const WorldId& world_id, uint64_t seq, BytesView record,
                  const Pointers& pointers);

// An event and the cells that it reached. The height of its record is that of the moment.
// A view for one call: it refers to the caller's event, moment and digest.
struct EventNote {
  const Event& event;
  const Moment& moment;
  BytesView digest;                                             // of the event
  std::vector<std::pair<std::string_view, BytesView>> cells{};  // workflow, key
};
Bytes encode_note(const WorldId& world_id, const EventNote& note);

// Forgets records [from, to). The pointers to them stay until encode_unpointing() names them: the
// view cannot look for them.
Bytes encode_compaction(const WorldId& world_id, uint64_t from, uint64_t to);

// Forgets pointers, as each_pointer() gives them.
Bytes encode_unpointing(const WorldId& world_id, const std::vector<Bytes>& pointers);

// Calls visit(pointer) for each pointer to the record of a row under records_prefix(): the key of
// the pointer's row after its world. The view is valid only during the call.
void each_pointer(BytesView note, const std::function<void(BytesView pointer)>& visit);

// Writes the rows of a note: the record itself, then the pointers to it.
void put_rows(BytesView note, ViewRows& rows);
// The record of a row under records_prefix().
Result<Bytes> record_of(BytesView row);

}  // namespace pawl::worlds

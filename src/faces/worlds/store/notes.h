#pragma once
// A note is what a frame keeps of a record: the record itself, or of an event only what is not the
// same in all of them. The view keeps notes as rows; record_of() makes the record again.

#include "faces/worlds/store/records.h"
#include "kernel/program.h"

namespace pawl::worlds {

// What should point to a record: `kind` of keys.h, and what of that kind.
using Pointers = std::vector<std::pair<std::string_view, Bytes>>;

Bytes encode_note(const WorldId& world_id, uint64_t seq, BytesView record,
                  const Pointers& pointers);

// An event and whom it reached. Its record's height is the moment's.
struct EventNote {
  const Event& event;
  const Moment& moment;
  BytesView digest;                                             // of the event
  std::vector<std::pair<std::string_view, BytesView>> cells{};  // workflow, key
};
Bytes encode_note(const WorldId& world_id, const EventNote& note);

// Forgets records [from, to).
Bytes encode_compaction(const WorldId& world_id, uint64_t from, uint64_t to);

// The rows of a note: the record's own, then what points to it.
void put_rows(BytesView note, ViewRows& rows);
// The record that a row of records_prefix() stands for.
Result<Bytes> record_of(BytesView row);

}  // namespace pawl::worlds

#pragma once
// A note records what one turn did to one instance: executions that began or ended, other events,
// and the change of status. It is part of the frame. The rows for lists, histories and open user
// tasks are derived from notes alone.

#include <functional>
#include <string>
#include <vector>

#include "faces/processes/state/instance.h"

namespace pawl::processes {

enum class Execution : uint8_t { running = 1, completed, failed, skipped };
std::string_view execution_name(Execution status);

struct Fact {
  enum class Kind : uint8_t {
    entered = 1,  // an execution began
    ended,        // an execution ended
    event,        // anything else
  };
  Kind kind = Kind::event;
  uint32_t ordinal = 0;
  processes::Kind step_kind = processes::Kind::end;
  uint32_t attempt = 0;
  Execution status = Execution::running;
  Time entered = 0;    // ended: when the execution began
  std::string step{};  // step id
  // entered: the form of a user task; ended: the reason of a failure; event: what happened.
  std::string text{};
  std::string undo{};  // ended: how to undo the variables that the step set; see undo_of
};

// undo_of() describes, as text, the variables that a step is about to overwrite with `outputs`;
// undo() restores them.
std::string undo_of(const json::Object& variables, const json::Object& outputs);
void undo(json::Object& variables, std::string_view text);

// The status after the note that erased an instance with all its rows.
inline constexpr Status kForgotten{};

// Head and tail carry the start and both statuses: the rows of lists need only the head, and a
// history row only the tail.
struct Note {
  std::string tenant;
  std::string instance_id;
  std::string definition_id;
  uint32_t version = 0;
  std::string business_key;
  Time started = 0;
  uint8_t before = 0;             // the status before; 0: the instance is new
  Status after = Status::active;  // or kForgotten
  std::string cause;              // the verb that began the turn
  std::string user;
  std::string reason;  // as the caller gave it
  std::vector<Fact> facts;
};

Bytes encode(const Note& note);
// The instance and its change of status. The texts point into the note's bytes.
struct NoteHead {
  std::string_view tenant, instance_id, definition_id;
  uint32_t version = 0;
  std::string_view business_key;
  Time started = 0;
  uint8_t before = 0;
  Status after = Status::active;
};
Result<NoteHead> decode_note_head(BytesView bytes);
// The rest of the note. A history row stores only this, since its key names the instance.
BytesView note_tail(BytesView bytes);
Result<Note> decode_note_tail(BytesView tail);
// Calls `visit` with each fact. Returns false when the facts cannot be read.
bool each_fact(BytesView tail, const std::function<void(const Fact&)>& visit);

}  // namespace pawl::processes

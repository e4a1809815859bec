#pragma once
// A note is what one turn did to one instance: which executions began and ended, what else
// happened, and how its status moved. It goes into the frame; the rows for lists, histories and
// open user tasks are made of notes alone.

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
    event,        // anything else worth telling
  };
  Kind kind = Kind::event;
  uint32_t ordinal = 0;
  processes::Kind step_kind = processes::Kind::end;
  uint32_t attempt = 0;
  Execution status = Execution::running;
  Time entered = 0;    // ended: when it had begun
  std::string step{};  // step id
  std::string text{};  // entered: label of a user task; ended: reason of failure; event: what
  std::string undo{};  // ended: what a step that sets variables had found; see undo_of
};

// What the variables were before a step set `outputs`, as a text; and as they were again.
std::string undo_of(const json::Object& variables, const json::Object& outputs);
void undo(json::Object& variables, std::string_view text);

struct Note {
  std::string tenant;
  std::string instance_id;
  std::string definition_id;
  uint32_t version = 0;
  std::string business_key;
  Time started = 0;
  uint8_t before = 0;  // status, 0 for a new instance
  Status after = Status::active;
  std::string cause;  // the verb that began the turn
  std::string user;
  std::string reason;  // that the caller gave
  std::vector<Fact> facts;
};

Bytes encode(const Note& note);
// Which instance, and how its status moved. Its texts are those of the note's bytes.
struct NoteHead {
  std::string_view tenant, instance_id, definition_id;
  uint32_t version = 0;
  std::string_view business_key;
  Time started = 0;
  uint8_t before = 0;
  Status after = Status::active;
};
Result<NoteHead> decode_note_head(BytesView bytes);
// The rest of it: what a history row keeps, since its key already names the instance.
BytesView note_tail(BytesView bytes);
Result<Note> decode_note_tail(BytesView tail);
// Its facts, one after the other; false when they cannot be read.
bool each_fact(BytesView tail, const std::function<void(const Fact&)>& visit);

}  // namespace pawl::processes

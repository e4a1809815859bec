#pragma once
// The input of the lifecycle program as bytes. All verbs use one struct and leave unused members
// empty. Some verbs of rules use a member for another purpose; they say so where they read it.

#include "faces/lifecycle/run/refuse.h"
#include "kernel/access.h"
#include "pawl/lifecycle/types.h"

namespace pawl::lifecycle {

struct Command {
  std::string_view type, id;
  std::string_view to;    // the target phase; some verbs document another use
  std::string_view note;  // or the reason
  std::string_view record;
  std::string_view text;  // JSON
  source triggered = source::framework;
  // `stamp` names this write (0: the program draws one). A replacement names the stamp or, when
  // that is 0, the version that it is based on.
  uint64_t stamp = 0, expected_stamp = 0, expected_version = 0;
};

Bytes encode(const Command& command);
// The result points into `bytes`.
Result<Command> decode_command(BytesView bytes);

// The answer of every writing verb.
struct Outcome {
  Seq version = 0;  // 0: that of the frame
  std::string phase{}, warning{};
  std::string result{};  // of types and rules: "created", "same", "changed"
};
Bytes encode(const Outcome& outcome);
Result<written> decode_written(const Answer& answer);
Result<Outcome> decode_outcome(BytesView bytes);

Input make_input(std::string verb, const Command& command, Caller caller);

}  // namespace pawl::lifecycle

#pragma once
// What callers ask of the program, as bytes: one shape for every verb, unused members empty.

#include "faces/lifecycle/run/refuse.h"
#include "kernel/access.h"
#include "pawl/lifecycle/types.h"

namespace pawl::lifecycle {

struct Command {
  std::string_view type, id;
  std::string_view to;    // phase, target, or what the verb says
  std::string_view note;  // or reason
  std::string_view record;
  std::string_view text;  // JSON
  source triggered = source::framework;
  uint64_t stamp = 0, expected_stamp = 0, expected_version = 0;
};

Bytes encode(const Command& command);
Result<Command> decode_command(BytesView bytes);  // views into `bytes`

// The answer of every writing verb.
struct Outcome {
  Seq version = 0;  // 0: the frame's own
  std::string phase{}, warning{};
  std::string word{};  // "created", "same", "changed" of types and rules
};
Bytes encode(const Outcome& outcome);
Result<written> decode_written(const Answer& answer);
Result<Outcome> decode_outcome(BytesView bytes);

Input make_input(std::string verb, const Command& command, Caller caller);

}  // namespace pawl::lifecycle

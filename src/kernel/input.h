#pragma once
// An input is a command from a caller or a receipt from outside, stamped at the door with time and
// dice. It goes into its frame whole, so that the frame can be run again.

#include <array>
#include <string>

#include "base/caller.h"
#include "kernel/cell.h"

namespace pawl {

struct Stamp {
  Time now = 0;  // never before the stamp of an earlier input
  std::array<uint64_t, 2> dice{};
};

struct Input {
  std::string program;
  std::string verb;  // the program's word for what is wanted
  Bytes body;
  Caller caller;
  Stamp stamp{};          // set by the kernel
  std::string settles{};  // the effect that this input is the receipt of; empty for a command
  uint64_t joins = 0;     // the open turn that this command wants to be part of; 0 for its own
  std::string once{};     // Idempotency-Key; empty for none

  // The body as the sender already had it; not recorded. A program may use it instead of decoding
  // the body, and must come to the same result.
  Decoded decoded{};
};

}  // namespace pawl

#pragma once
// An input is a command from a caller or a receipt from outside. The kernel stamps it with time and
// dice when it arrives. The frame records the whole input, so that the turn can be run again.

#include <array>
#include <string>

#include "base/caller.h"
#include "kernel/cell.h"

namespace pawl {

struct Delivery;

struct Stamp {
  Time now = 0;  // never less than the stamp of an earlier input
  std::array<uint64_t, 2> dice{};
};

struct Input {
  std::string program;
  std::string verb;  // what the program is asked to do
  Bytes body;
  Caller caller;
  Stamp stamp{};          // set by the kernel
  std::string settles{};  // id of the effect that this receipt settles; empty for a command
  uint64_t joins = 0;     // token of the open turn that this command joins; 0: a turn of its own
  std::string once{};     // Idempotency-Key; empty for none
  // The frame of this input is of version 1 or 2: if its turn put its answer off, the answer of
  // this first turn was recorded under the key. Only for `pawl verify`.
  bool records_first_answer = false;
  // The input is an effect of another shard (delivery.h). Null for the others.
  std::shared_ptr<const Delivery> delivery{};

  // The decoded body, if the sender had it; not recorded. A program may use it instead of decoding
  // `body`; the result must be the same.
  Decoded decoded{};
};

}  // namespace pawl

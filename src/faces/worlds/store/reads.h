#pragma once
// Which moment of a world a read is of: the head, exactly a height, or no height before one. An
// exact read serves the head and the heights of snapshots, whose indexes hold every state.

#include "faces/worlds/snapshot/cell_index.h"

namespace pawl::worlds {

struct Consistency {
  enum Kind : uint8_t { head, exact, at_least } kind = head;
  uint64_t height = 0;
};
// "head", "exact:HEIGHT" or "at_least:HEIGHT"; empty text is the head.
Result<Consistency> parse_consistency(std::string_view text);
// Refuses a head that is not there yet; true when the head serves it, false when only a snapshot
// can.
Result<bool> head_serves(const Consistency& wanted, std::string_view world, uint64_t height);
std::unexpected<Error> no_such_height(uint64_t height);

// A cell's state as a snapshot has it; nothing when it has no such cell.
Result<std::optional<Bytes>> state_in_snapshot(const IndexStore& store, std::string_view ref,
                                               std::string_view workflow, BytesView key);

// Digits and nothing else.
std::optional<uint64_t> whole_number(std::string_view text);

}  // namespace pawl::worlds

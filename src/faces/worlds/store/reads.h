#pragma once
// Consistency of a read: the head, exactly one height, or at least a height. An exact read can
// serve the head and the heights of snapshots, whose indexes hold every state.

#include "faces/worlds/snapshot/cell_index.h"

namespace pawl::worlds {

struct Consistency {
  enum Kind : uint8_t { head, exact, at_least } kind = head;
  uint64_t height = 0;
};
// "head", "exact:HEIGHT" or "at_least:HEIGHT"; empty text is the head.
Result<Consistency> parse_consistency(std::string_view text);
// True when the head serves the read, false when only a snapshot can. Refuses a height that the
// world has not reached.
Result<bool> head_serves(const Consistency& wanted, std::string_view world, uint64_t height);
std::unexpected<Error> no_such_height(uint64_t height);

// A cell's state in a snapshot; nothing when the snapshot has no such cell.
Result<std::optional<Bytes>> state_in_snapshot(const IndexStore& store, std::string_view ref,
                                               std::string_view workflow, BytesView key);

// A number written with digits only.
std::optional<uint64_t> whole_number(std::string_view text);

}  // namespace pawl::worlds

#pragma once
// Tells an interrupted write from damage. A segment is filled with zeros before it is used, so a
// write that a power cut interrupts leaves whole sectors of zeros, or zeros at its end. A group
// whose own bytes look like that could be taken for an interrupted write when it is damaged later,
// and would be dropped although it was acknowledged. Such a group therefore ends in a list of the
// sectors that are zero by its own content: any other sector of zeros was never written.

#include <optional>
#include <vector>

#include "base/bytes.h"

namespace pawl {

// Sectors of zeros that follow each other. Sector 0 is the one in which the group begins.
struct SectorRun {
  uint32_t first = 0;
  uint32_t count = 0;
};

// The sectors of a group that hold only zeros. `offset` is the group's offset in its file. A piece
// of a sector at either end counts too, however short: a power cut may lose just that sector.
std::vector<SectorRun> zero_sectors(BytesView group, uint64_t offset);
// True when the group ends in so many zeros that its end may not have been written.
bool ends_in_zeros(BytesView group);

// Each run takes 8 bytes; the number of runs and a checksum, seeded with the salt, follow.
Bytes encode_zero_list(const std::vector<SectorRun>& runs, uint32_t salt);
// The list at the end of `group`, which has no padding; nothing when its checksum is wrong.
struct ZeroList {
  std::vector<SectorRun> runs;
  size_t bytes = 0;  // size of the list
};
std::optional<ZeroList> decode_zero_list(BytesView group, uint32_t salt);

// True when a sector of zeros is not in the group's list, or belongs to the list itself.
bool has_unlisted_zeros(BytesView group, uint64_t offset, uint32_t salt);

}  // namespace pawl

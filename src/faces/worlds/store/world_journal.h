#pragma once
// The rows of a world's journal: its records by seq, and the pointers that lead to records.

#include <functional>

#include "faces/worlds/store/keys.h"
#include "kernel/access.h"

namespace pawl::worlds {

// Each visits until `visit` returns false; those that end in _back begin with the last. A damaged
// row ends the visit with journal.error.
using VisitRecord = std::function<bool(uint64_t seq, BytesView record)>;
using VisitSeq = std::function<bool(uint64_t seq)>;
Result<void> scan_records(const ReadSnapshot& snapshot, const WorldId& world_id, uint64_t from,
                          const VisitRecord& visit);
Result<void> scan_records_back(const ReadSnapshot& snapshot, const WorldId& world_id,
                               const VisitRecord& visit);
// Nothing when the record is compacted away or does not exist yet.
Result<std::optional<Bytes>> record_at(const ReadSnapshot& snapshot, const WorldId& world_id,
                                       uint64_t seq);
// The seqs of records that point to `what`; `kind` is one of those in keys.h.
Result<void> scan_pointers(const ReadSnapshot& snapshot, const WorldId& world_id,
                           std::string_view kind, BytesView what, const VisitSeq& visit);
Result<void> scan_pointers_back(const ReadSnapshot& snapshot, const WorldId& world_id,
                                std::string_view kind, BytesView what, const VisitSeq& visit);

}  // namespace pawl::worlds

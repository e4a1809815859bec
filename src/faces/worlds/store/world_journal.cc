#include "faces/worlds/store/world_journal.h"

#include "faces/worlds/store/notes.h"

namespace pawl::worlds {
namespace {

// Both records and pointers end with the seq.
uint64_t seq_of(BytesView key) { return read_ordered64(key.substr(key.size() - 8)); }

Result<void> scan(const ReadSnapshot& snapshot, const WorldId& world_id, const VisitRecord& visit,
                  BytesView from, bool back) {
  Result<void> bad;
  TRY_OK(snapshot.rows(
      kProgram, records_prefix(world_id),
      [&](BytesView key, BytesView row) {
        auto record = record_of(row);
        // `rows` knows nothing of records, so the error leaves the visit through `bad`.
        if (!record) bad = fail(std::move(record.error()));
        return record && visit(seq_of(key), *record);
      },
      from, back));
  return bad;
}

}  // namespace

Result<void> scan_records(const ReadSnapshot& snapshot, const WorldId& world_id, uint64_t from,
                          const VisitRecord& visit) {
  return scan(snapshot, world_id, visit, record_row(world_id, from), false);
}

Result<void> scan_records_back(const ReadSnapshot& snapshot, const WorldId& world_id,
                               const VisitRecord& visit) {
  return scan(snapshot, world_id, visit, {}, true);
}

Result<std::optional<Bytes>> record_at(const ReadSnapshot& snapshot, const WorldId& world_id,
                                       uint64_t seq) {
  TRY(std::optional<Bytes> row, snapshot.row(kProgram, record_row(world_id, seq)));
  if (!row) return std::optional<Bytes>();
  TRY(Bytes record, record_of(*row));
  return std::optional<Bytes>(std::move(record));
}

static Result<void> scan_seqs(const ReadSnapshot& snapshot, const Bytes& lead,
                              const VisitSeq& visit, bool back) {
  // A longer key is a row of a longer `what` that begins alike, for example of another cell.
  return snapshot.rows(
      kProgram, lead,
      [&](BytesView key, BytesView) { return key.size() != lead.size() + 8 || visit(seq_of(key)); },
      {}, back);
}

Result<void> scan_pointers(const ReadSnapshot& snapshot, const WorldId& world_id,
                           std::string_view kind, BytesView what, const VisitSeq& visit) {
  return scan_seqs(snapshot, index_prefix(world_id, kind, what), visit, false);
}

Result<void> scan_pointers_back(const ReadSnapshot& snapshot, const WorldId& world_id,
                                std::string_view kind, BytesView what, const VisitSeq& visit) {
  return scan_seqs(snapshot, index_prefix(world_id, kind, what), visit, true);
}

}  // namespace pawl::worlds

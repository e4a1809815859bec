#include "faces/entities/audit/history.h"

#include "faces/entities/program.h"
#include "faces/entities/store/entity.h"
#include "faces/entities/store/store.h"

namespace pawl::entities {

// Merges the trails of two places, newest first: those stored under the seq of a version of the
// entity, and the detached ones, of frames that did not write the entity.
struct History::Reader {
  const ReadSnapshot& snapshot;
  std::string_view id;
  Bytes detached;
  const Visit& visit;
  Seq below = ~Seq{0};  // detached trails from this seq on have been visited
  bool known = false;   // the entity exists or existed
  bool going = true;    // false after `visit` returned false
  Result<void> good{};

  bool take(BytesView value) {
    auto trail = decode_trail(value);
    if (!trail) {
      good = fail(std::move(trail.error()));
      return false;
    }
    known = true;
    going = visit(*trail);
    return going;
  }
  void read_detached(Seq above) {
    auto done = snapshot.rows(
        kProgram, detached,
        [&](BytesView key, BytesView value) {
          return read_ordered64(key.substr(detached.size(), 8)) > above && take(value);
        },
        // Backwards from the last place: rows at or above `below` were visited with a newer
        // version.
        detached + ordered64(below), true);
    if (good && !done) good = std::move(done);
  }
  // Detached trails that are newer than this version come first, then the trails of the version
  // itself.
  bool version(Seq seq) {
    known = true;
    read_detached(seq);
    below = seq;
    if (!good || !going) return false;
    auto done = snapshot.rows(
        kProgram, trail_row_prefix(seq, id),
        [&](BytesView, BytesView value) { return take(value); }, {}, true);
    if (good && !done) good = std::move(done);
    return good && going;
  }
};

bool History::same_change(const Trail& older, const Trail& newer) {
  return older.change == ChangeKind::updated && newer.change == ChangeKind::updated &&
         older.change_tx == newer.change_tx;
}

Result<bool> History::each(const Visit& visit) const {
  for (auto own = own_.rbegin(); own != own_.rend(); ++own)
    if (!visit(*own)) return true;
  Reader reader{snapshot_, id_, detached_trail_row_prefix(tenant_, id_), visit};
  TRY_OK(snapshot_.history(entity_key(tenant_, id_), [&](BytesView, const Cell& cell) {
    return reader.version(cell.version);
  }));
  // Trails from before the first version.
  if (reader.good && reader.going) reader.read_detached(0);
  TRY_OK(reader.good);
  return reader.known || !own_.empty();
}

Result<std::vector<Trail>> History::changes(const std::optional<Time>& at) const {
  std::vector<Trail> out;
  bool known = false;
  TRY_OK(each([&](const Trail& t) {
    if (t.change == ChangeKind::none) return true;
    known = true;
    if (!out.empty() && same_change(t, out.back())) return true;
    if (!at || t.now <= *at) out.push_back(t);
    return out.size() < kMaxChanges;
  }));
  if (!known) return fail(entity_not_found(id_));
  return out;
}

}  // namespace pawl::entities

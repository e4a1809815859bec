#include "faces/entities/audit/history.h"

#include "faces/entities/program.h"
#include "faces/entities/store/entity.h"
#include "faces/entities/store/store.h"

namespace pawl::entities {

// The trails of two places as one: those under the seqs of the entity's versions, and between them
// those of frames that did not write it.
struct History::Reader {
  const ReadSnapshot& snapshot;
  std::string_view id;
  Bytes loose;
  const Visit& visit;
  Seq below = ~Seq{0};  // loose ones from here on have been visited
  bool known = false, going = true;
  Result<void> good{};

  bool take(BytesView value) {
    auto trail = decode_trail(value);
    if (!trail) return good = fail(std::move(trail.error())), false;
    known = true;
    return going = visit(*trail);
  }
  void read_loose(Seq above) {
    auto done = snapshot.rows(
        kProgram, loose,
        [&](BytesView key, BytesView value) {
          return read_ordered64(key.substr(loose.size(), 8)) > above && take(value);
        },
        loose + ordered64(below), true);
    if (good && !done) good = std::move(done);
  }
  bool version(Seq seq) {
    known = true;
    read_loose(seq);
    below = seq;
    if (!good || !going) return false;
    auto done = snapshot.rows(
        kProgram, trail_row_prefix(seq, id),
        [&](BytesView, BytesView value) { return take(value); }, {}, true);
    if (good && !done) good = std::move(done);
    return good && going;
  }
};

Result<bool> History::each(const Visit& visit) const {
  for (auto own = own_.rbegin(); own != own_.rend(); ++own)
    if (!visit(*own)) return true;
  Reader reader{snapshot_, id_, loose_trail_row_prefix(tenant_, id_), visit};
  TRY_OK(snapshot_.history(entity_key(tenant_, id_), [&](BytesView, const Cell& cell) {
    return reader.version(cell.version);
  }));
  if (reader.good && reader.going) reader.read_loose(0);
  TRY_OK(reader.good);
  return reader.known || !own_.empty();
}

Result<std::vector<Trail>> History::changes(const std::optional<Time>& at) const {
  std::vector<Trail> out;
  bool known = false;
  TRY_OK(each([&](const Trail& t) {
    if (t.change == ChangeKind::none) return true;
    known = true;
    if (!at || t.now <= *at) out.push_back(t);
    return out.size() < kChanges;
  }));
  if (!known) return fail(entity_not_found(id_));
  return out;
}

}  // namespace pawl::entities

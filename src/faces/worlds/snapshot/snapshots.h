#pragma once
// Snapshots takes and restores snapshots. A snapshot names everything a world is by hashes: cells
// changed since the last one go into the index, and a small blob holds the roots of the index and
// the open work. Equal worlds give equal bytes.

#include <span>

#include "faces/worlds/step/stepper.h"

namespace pawl::worlds {

// One turn of a snapshot brings this much into the index: changed cells, and about as many bytes of
// states and nodes. The rest waits for further turns, so that other inputs have theirs in between.
inline constexpr size_t kMaxCellsPerTurn = 2'000;
inline constexpr size_t kMaxIndexBytesPerTurn = 8 * 1024 * 1024;

class Snapshots {
 public:
  Snapshots(WorldTurn& turn, Stepper& stepper) : turn_(turn), stepper_(stepper) {}

  // Brings changed cells into the index. Returns where to go on, in a further turn, when there are
  // more than one turn should take. The first turn passes nothing for `from` and is refused while
  // the world is busy; later turns wait until it is not.
  Result<std::optional<Key>> prepare(std::optional<BytesView> from);
  // Takes the snapshot, with all changed cells that are left. Returns its ref.
  Result<std::string> take();
  // Makes the world what the snapshot says it was. The world must have no cells: nothing is erased.
  Result<void> restore(std::string_view ref);
  // Forgets the records up to and including a height before the newest snapshot. Their blobs become
  // garbage; a fork can no longer begin there. `conflict` for a later height.
  Result<void> compact(uint64_t through);

 private:
  struct Marked {  // a changed cell and the mark that says so
    Key mark;
    std::string workflow;
    Bytes key;
  };
  struct Changes;  // of the two indexes of one workflow
  Result<std::optional<Key>> materialize(BytesView from, size_t max, size_t budget);
  Result<bool> has_marks(uint64_t epoch);
  Result<std::optional<Key>> take_epoch(uint64_t epoch, BytesView from, size_t& max,
                                        size_t& budget);
  Result<size_t> index_cells(const std::string& workflow, std::span<const Marked> cells,
                             size_t& budget);
  Result<Changes> changes_of(const std::string& workflow, std::span<const Marked> cells,
                             size_t max_bytes);
  Result<void> finish_cell(const std::string& workflow, const Marked& marked,
                           const Instance* instance);
  Result<Bytes> snapshot_blob();
  Result<void> list_cells(cbor::Map& blob, std::string_view name, const Key& prefix);
  Result<void> record();

  Result<void> restore_manifest(const cbor::Value& blob);
  Result<void> restore_cells(const std::string& workflow, const World::Roots& roots);
  Result<void> restore_lists(const cbor::Value& blob);

  WorldTurn& turn_;
  Stepper& stepper_;
};

// Visits the items of a list of a snapshot. A long list lies in blobs of its own, whose digests
// `part` is given.
Result<void> walk_list(const IndexStore& store, const cbor::Value& snapshot,
                       const std::string& name,
                       const std::function<Result<void>(BytesView item)>& visit,
                       const std::function<void(BytesView digest)>& part = {});

}  // namespace pawl::worlds

// Restores a world from a snapshot, into a world that has no cells yet (a fork). Blobs are looked
// up in the same tenant's store. Snapshots of damaged or foreign form are refused with
// snapshot.decode.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/snapshot/snapshots.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

std::unexpected<Error> bad_snapshot(std::string why) {
  return fail(Code::corrupt, "snapshot.decode", "snapshot cannot be restored: " + std::move(why));
}

// The snapshot must be whole: what `root_completeness` says must be what it holds.
Result<void> check_complete(const Value& blob) {
  const Value* manifest = blob.find("manifest_hash");
  const Value* complete = blob.find("root_completeness");
  const Value* roots = blob.find("workflow_index_roots");
  const Value* head = blob.find("head");
  if (!manifest || !manifest->is_bytes()) return bad_snapshot("it names no manifest");
  if (!complete || !complete->find("manifest_hash") ||
      *complete->find("manifest_hash") != *manifest)
    return bad_snapshot("root completeness is missing or names another manifest");
  if (!roots || !complete->find("cell_index_roots") ||
      *complete->find("cell_index_roots") != *roots)
    return bad_snapshot("root completeness names other roots");
  if (!head || !head->is_bytes()) return bad_snapshot("it has no head");
  return {};
}

// Both indexes of each workflow.
Result<std::map<std::string, World::Roots>> read_roots(const Value& blob) {
  std::map<std::string, World::Roots> out;
  for (const Value& root : blob.find("workflow_index_roots")->array()) {
    TRY(out[root.array()[0].text()].cells, parse_digest_array(&root.array()[1]));
  }
  const Value* instances = blob.find("workflow_instance_roots");
  if (!instances || !instances->is_array())
    return bad_snapshot("it lacks 'workflow_instance_roots'");
  for (const Value& root : instances->array()) {
    TRY(out[root.array()[0].text()].instances, parse_digest_array(&root.array()[1]));
  }
  return out;
}

}  // namespace

Result<void> Snapshots::restore_manifest(const Value& blob) {
  TRY(Bytes bytes, turn_.blobs.get(blob.find("manifest_hash")->bytes()));
  TRY(Value value, cbor::decode(bytes));
  TRY(Manifest manifest, parse_manifest(plain_json(value)));
  TRY(LoadedManifest loaded, turn_.load_manifest(manifest, {}));
  return turn_.use_manifest(std::move(loaded));
}

Result<void> Snapshots::restore_cells(const std::string& workflow, const World::Roots& roots) {
  const IndexStore store = turn_.blobs.index_store();
  return walk_index(store, roots.instances, [&](const Value& entry) -> Result<bool> {
    const Value* key = entry.find("key_bytes");
    const Value* stored = entry.find("record");
    if (!key || !key->is_bytes() || !stored || !stored->is_bytes())
      return bad_snapshot("an instance entry is damaged");
    TRY(Instance instance, decode_instance(stored->bytes()));
    TRY(std::optional<Value> cell, find_in_index(store, roots.cells, view(sha256(key->bytes()))));
    // A failed instance may have no state, and then no entry in the index of cells.
    if (cell) {
      TRY(Bytes state, parse_digest_array(cell->find("state_hash")));
      TRY(instance.state, turn_.blobs.get(state));
    }
    turn_.kernel.write(cell_key(turn_.id, workflow, key->bytes()), encode(instance));
    return true;
  });
}

Result<void> Snapshots::restore_lists(const Value& blob) {
  const IndexStore store = turn_.blobs.index_store();
  TRY_OK(walk_list(store, blob, "pending_workflow_receipts", [&](BytesView item) -> Result<void> {
    TRY(PendingIntent intent, decode_pending(item));
    turn_.kernel.write(pending_key(turn_.id, intent.intent), encode(intent));
    return {};
  }));
  return walk_list(store, blob, "proposals", [&](BytesView item) -> Result<void> {
    TRY(Proposal p, decode_proposal(item));
    turn_.kernel.write(proposal_key(turn_.id, p.id), encode(p));
    return {};
  });
}

Result<void> Snapshots::restore(std::string_view ref) {
  TRY(Bytes digest, parse_hash(ref));
  TRY(Bytes bytes, turn_.blobs.get(digest));
  TRY(Value blob, cbor::decode(bytes));
  TRY_OK(check_complete(blob));
  // The head brings all heights and counts, so cells are written below without counting them again.
  TRY(turn_.head, decode_head(blob.find("head")->bytes()));
  TRY_OK(restore_manifest(blob));
  TRY(const auto roots, read_roots(blob));
  World& world = turn_.edit_world();
  world.roots = roots;
  world.snapshot_ref = ref;
  world.snapshot_height = turn_.head.height;
  // The epoch begins at 1 and grows with every applied manifest.
  world.epoch = 1 + turn_.head.applied;
  for (const auto& [workflow, of] : roots)
    if (!of.instances.empty()) TRY_OK(restore_cells(workflow, of));
  TRY_OK(restore_lists(blob));
  // The head stands at the height of the snapshot's own record.
  return record();
}

}  // namespace pawl::worlds

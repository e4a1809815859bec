// A snapshot names everything a world is by hashes: the cells changed since the last one go into the
// index, and a small blob holds the roots and what is in flight. Equal worlds give equal bytes.

#include "faces/worlds/engine.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

Value cell_entry(BytesView key_hash, BytesView key, BytesView state_hash, size_t size, uint64_t last) {
  return cbor::Map{{"key_hash", digest_array(key_hash)}, {"key_bytes", octets(key)}, {"state_hash", digest_array(state_hash)},
                   {"size", uint64_t{size}}, {"last_active_ns", last}};
}

}  // namespace

IndexStore Engine::index_store() {
  return {[this](BytesView digest) { return blobs_.get(digest); }, [this](BytesView bytes) { return blobs_.put(bytes); }};
}

Result<bool> Engine::materialize(size_t most) {
  struct Changes {
    std::vector<IndexChange> cells, instances;
  };
  std::map<std::string, Changes> by_workflow;
  std::vector<std::pair<std::string, Bytes>> dirty;
  TRY_OK(turn_.scan(dirty_prefix(place_), [&](BytesView at, const Cell&) {
    CellAt where = cell_at(place_, at);
    dirty.emplace_back(std::move(where.workflow), std::move(where.key));
    return dirty.size() <= most;
  }));
  const bool all = dirty.size() <= most;
  if (!all) dirty.pop_back();
  for (const auto& [workflow, key] : dirty) {
    turn_.erase(dirty_key(place_, workflow, key));
    const Key where = cell_key(place_, workflow, key);
    TRY(auto instance, turn_.read_as<Instance>(where, decode_instance));
    const Bytes at(view(sha256(key)));
    Changes& changes = by_workflow[workflow];
    IndexChange cell{at, {}}, record{at, {}};
    if (instance && instance->state) {
      TRY(Bytes state, blobs_.put(*instance->state));
      cell.entry = cell_entry(at, key, state, instance->state->size(), instance->last_seq);
    }
    // A cell that is gone and was well is forgotten here.
    const bool keep = instance && (instance->state || instance->status != Status::completed);
    if (keep) record.entry = cbor::Map{{"key_hash", digest_array(at)}, {"key_bytes", octets(key)}, {"record", octets(encode_for_snapshot(*instance))}};
    else if (instance) {
      turn_.erase(where);
      --head_.completed;
    }
    changes.cells.push_back(std::move(cell));
    changes.instances.push_back(std::move(record));
  }
  const IndexStore store = index_store();
  World& world = edit();
  for (auto& [workflow, changes] : by_workflow) {
    World::Roots& roots = world.roots[workflow];
    TRY(roots.cells, update_index(store, roots.cells, std::move(changes.cells)));
    TRY(roots.instances, update_index(store, roots.instances, std::move(changes.instances)));
    if (roots == World::Roots{}) world.roots.erase(workflow);
  }
  ++head_.marks;  // what changes from now on is marked anew
  return all;
}

Result<bool> Engine::prepare_snapshot() {
  TRY_OK(refuse_while_busy());
  return materialize(kCellsPerTurn);
}

Result<Bytes> Engine::snapshot_blob() {
  cbor::Array cell_roots, instance_roots, pending, proposals;
  for (const auto& [workflow, roots] : world_->roots) {
    if (!roots.cells.empty()) cell_roots.push_back(cbor::Array{Value(workflow), digest_array(roots.cells)});
    if (!roots.instances.empty()) instance_roots.push_back(cbor::Array{Value(workflow), digest_array(roots.instances)});
  }
  TRY_OK(turn_.scan(pending_prefix(place_), [&](BytesView, const Cell& cell) {
    pending.push_back(octets(cell.value()));
    return true;
  }));
  TRY_OK(turn_.scan(proposals_prefix(place_), [&](BytesView, const Cell& cell) {
    proposals.push_back(octets(cell.value()));
    return true;
  }));
  Head bare = head_;
  bare.marks = 0;  // says how often, not what
  TRY(Bytes manifest, parse_hash(world_->manifest_hash));
  Value completeness = cbor::Map{{"manifest_hash", octets(manifest)}, {"workflow_state_roots", cbor::Array{}}, {"cell_index_roots", cell_roots},
                                 {"workspace_roots", cbor::Array{}}, {"pinned_roots", cbor::Array{}}};
  return cbor::encode(cbor::Map{
      {"workflow_state", cbor::Array{}}, {"workflow_index_roots", Value(cell_roots)}, {"workflow_instance_roots", Value(std::move(instance_roots))},
      {"recent_receipts", cbor::Array{}}, {"queued_effects", cbor::Array{}}, {"pending_workflow_receipts", Value(std::move(pending))},
      {"workflow_instances", cbor::Array{}}, {"proposals", Value(std::move(proposals))}, {"height", head_.height}, {"logical_now_ns", head_.logical_now},
      {"manifest_hash", octets(manifest)}, {"head", octets(encode(bare))}, {"root_completeness", std::move(completeness)}});
}

Result<std::string> Engine::snapshot() {
  TRY_OK(drain());
  if (!mail_.empty()) return fail(Code::exhausted, "busy", "world '" + place_.world + "' still works off deliveries: retry shortly");
  TRY(bool all, materialize(SIZE_MAX));
  CHECK(all);
  TRY(Bytes blob, snapshot_blob());
  TRY(Bytes digest, blobs_.put(blob));
  World& world = edit();
  world.snapshot_ref = hash_text(digest);
  world.snapshot_height = head_.height;
  TRY_OK(record(snapshot_record({world_->snapshot_ref, world_->manifest_hash, head_.height, head_.logical_now}), {{"s", {}}}));
  return world_->snapshot_ref;
}

Result<void> Engine::compact(uint64_t through) {
  if (through >= world_->snapshot_height)
    return fail(Code::conflict, "conflict", "records are needed from the newest snapshot on (height " + std::to_string(world_->snapshot_height) + "): take a snapshot first");
  if (through + 1 <= world_->retained_from) return {};
  turn_.note(encode_compaction(place_, world_->retained_from, through + 1));
  edit().retained_from = through + 1;
  return {};
}

}  // namespace pawl::worlds

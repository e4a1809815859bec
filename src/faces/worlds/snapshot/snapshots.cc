#include "faces/worlds/snapshot/snapshots.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

// The fields are in canonical order.
// `last` is a height: the peer calls the field last_active_ns and writes a height as well.
Bytes cell_entry(BytesView key_hash, BytesView key, BytesView state_hash, size_t size,
                 uint64_t last) {
  Bytes out;
  cbor::Out to(out);
  to.map(5)
      .text("size")
      .uint(size)
      .text("key_hash")
      .digest_array(key_hash)
      .text("key_bytes")
      .bytes(key);
  to.text("state_hash").digest_array(state_hash).text("last_active_ns").uint(last);
  return out;
}

Bytes record_entry(BytesView key_hash, BytesView key, BytesView record) {
  Bytes out;
  cbor::Out(out)
      .map(3)
      .text("record")
      .bytes(record)
      .text("key_hash")
      .digest_array(key_hash)
      .text("key_bytes")
      .bytes(key);
  return out;
}

// Bytes of one part of a list: a blob must fit in a cell.
constexpr size_t kMaxPartBytes = 4 * 1024 * 1024;

// A cell that was deleted and whose instance completed is dropped.
bool is_kept(const Instance* instance) {
  return instance && (instance->state || instance->status != InstanceStatus::completed);
}

}  // namespace

// Changes of the two indexes, in the order of the cells, and the instances they were made from.
struct Snapshots::Changes {
  std::vector<IndexChange> states, records;
  std::vector<std::shared_ptr<const Instance>> instances;
  size_t bytes = 0;
};

// Stops behind the cell that reaches `max_bytes`.
Result<Snapshots::Changes> Snapshots::changes_of(const std::string& workflow,
                                                 std::span<const Marked> cells, size_t max_bytes) {
  Changes out;
  for (const Marked& marked : cells) {
    TRY(auto instance,
        turn_.kernel.read_as<Instance>(cell_key(turn_.id, workflow, marked.key), decode_instance));
    const Bytes key_hash(view(sha256(marked.key)));
    IndexChange state{key_hash, {}};
    IndexChange record{key_hash, {}};
    if (instance && instance->state) {
      state.entry = cell_entry(key_hash, marked.key, view(sha256(*instance->state)),
                               instance->state->size(), instance->last_seq);
      out.bytes += instance->state->size();
    }
    if (is_kept(instance.get())) {
      Bytes stored = encode_for_snapshot(*instance);
      out.bytes += stored.size();
      record.entry = record_entry(key_hash, marked.key, stored);
    }
    out.states.push_back(std::move(state));
    out.records.push_back(std::move(record));
    out.instances.push_back(std::move(instance));
    if (out.bytes >= max_bytes) break;
  }
  return out;
}

// The cell is in the index: its mark goes, and its state goes into the store.
Result<void> Snapshots::finish_cell(const std::string& workflow, const Marked& marked,
                                    const Instance* instance) {
  turn_.kernel.erase(marked.mark);
  if (instance && instance->state) TRY_OK(turn_.blobs.put(*instance->state));
  // Counted in `completed` until now; see is_kept().
  if (!instance || is_kept(instance)) return {};
  turn_.kernel.erase(cell_key(turn_.id, workflow, marked.key));
  --turn_.head.completed;
  return {};
}

// Brings changed cells of one workflow into its indexes, in the order of the index, as far as
// `budget` goes. Returns how many. Half of the budget is for states and records, and a quarter for
// the nodes of each index.
Result<size_t> Snapshots::index_cells(const std::string& workflow, std::span<const Marked> cells,
                                      size_t& budget) {
  TRY(Changes changes, changes_of(workflow, cells, budget / 2));
  const IndexStore store = turn_.blobs.index_store();
  World::Roots roots;
  if (auto it = turn_.world().roots.find(workflow); it != turn_.world().roots.end())
    roots = it->second;
  TRY(IndexUpdate updated, update_index(store, roots.cells, changes.states, budget / 4));
  // Marks are in the order of the index, so sorting did not move them: the first `taken` of both
  // lists are the same cells.
  changes.records.resize(updated.taken);
  TRY(IndexUpdate beside, update_index(store, roots.instances, changes.records, SIZE_MAX));
  roots = {std::move(updated.root), std::move(beside.root)};
  // No entry left: a world that deleted all cells equals one that never had any.
  if (roots == World::Roots{})
    turn_.edit_world().roots.erase(workflow);
  else
    turn_.edit_world().roots[workflow] = std::move(roots);
  for (size_t i = 0; i < updated.taken; ++i)
    TRY_OK(finish_cell(workflow, cells[i], changes.instances[i].get()));
  budget -= std::min(budget, changes.bytes + updated.bytes + beside.bytes);
  return updated.taken;
}

// Brings in the marked cells of an epoch that has ended, from `from` on. Returns where to go on;
// nothing when no mark is left.
Result<std::optional<Key>> Snapshots::take_epoch(uint64_t epoch, BytesView from, size_t& max,
                                                 size_t& budget) {
  std::vector<Marked> marked;
  TRY_OK(turn_.kernel.scan(
      dirty_prefix(turn_.id, epoch),
      [&](BytesView at, const Cell&) {
        CellAt where = marked_at(turn_.id, at);
        marked.push_back({Key(at), std::move(where.workflow), std::move(where.key)});
        // One more than allowed: its mark is the place to go on.
        return marked.size() <= max;
      },
      from));
  std::optional<Key> next;
  if (marked.size() > max) {
    next = std::move(marked.back().mark);
    marked.pop_back();
  }
  max -= marked.size();
  for (size_t at = 0; at < marked.size();) {
    size_t end = at + 1;
    while (end < marked.size() && marked[end].workflow == marked[at].workflow)
      ++end;
    TRY(size_t taken, index_cells(marked[at].workflow,
                                  std::span<const Marked>(marked).subspan(at, end - at), budget));
    at += taken;
    // Go on with the next workflow. Otherwise the budget is spent, maybe in the middle of a
    // workflow.
    if (at == marked.size() || (at == end && budget > 0)) continue;
    next = marked[at].mark;
    break;
  }
  return next;
}

Result<bool> Snapshots::has_marks(uint64_t epoch) {
  bool any = false;
  TRY_OK(turn_.kernel.scan(dirty_prefix(turn_.id, epoch), [&](BytesView, const Cell&) {
    any = true;
    return false;
  }));
  return any;
}

// Brings in epoch after epoch, because cells that change meanwhile are marked in a new one. Returns
// where the next turn goes on; nothing when no cell is marked any more.
Result<std::optional<Key>> Snapshots::materialize(BytesView from, size_t max, size_t budget) {
  TRY(Cell cell, turn_.kernel.read(epoch_key(turn_.id)));
  const uint64_t first = cell.exists() ? read_ordered64(cell.value()) : 0;
  uint64_t epoch = first;
  std::optional<Key> next;
  while (!next) {
    // This epoch still takes new marks. If it has any, it ends here: later changes go into the next
    // one.
    if (epoch == turn_.head.marks) {
      TRY(bool any, has_marks(epoch));
      if (!any) break;
      ++turn_.head.marks;
    }
    const Key begin = dirty_prefix(turn_.id, epoch);
    if (max == 0 || budget == 0) {
      next = begin;
      break;
    }
    TRY(next, take_epoch(epoch, from.starts_with(begin) ? from : BytesView(begin), max, budget));
    if (!next) ++epoch;
  }
  if (epoch != first) turn_.kernel.write(epoch_key(turn_.id), ordered64(epoch));
  return next;
}

// The place to go on is one byte with the number of epochs begun, then the mark. Each further epoch
// may take twice as much per turn, so that a snapshot ends however fast cells change.
Result<std::optional<Key>> Snapshots::prepare(std::optional<BytesView> from) {
  if (!from) TRY_OK(turn_.refuse_while_busy());
  const bool goes_on = from && !from->empty();
  uint64_t begun = goes_on ? static_cast<uint8_t>(from->front()) : 0;
  const uint64_t twice = std::max<uint64_t>(begun, 1) - 1;
  const uint64_t before = turn_.head.marks;
  TRY(std::optional<Key> next, materialize(goes_on ? from->substr(1) : BytesView(),
                                           kMaxCellsPerTurn << std::min<uint64_t>(twice, 5),
                                           kMaxIndexBytesPerTurn << std::min<uint64_t>(twice, 3)));
  // All cells are in the index, but deliveries wait: come back in another turn (an empty mark).
  if (!next && !turn_.mail.empty()) next.emplace();
  begun = std::min<uint64_t>(begun + turn_.head.marks - before, 255);
  if (next) next->insert(0, 1, static_cast<char>(begun));
  return next;
}

// Plain CBOR in the peer's order of fields, with `workflow_instance_roots`, `proposals` and `head`
// as Pawl's additions (docs/formats/worlds.md).
Result<Bytes> Snapshots::snapshot_blob() {
  cbor::Array cell_roots, instance_roots;
  for (const auto& [workflow, roots] : turn_.world().roots) {
    if (!roots.cells.empty())
      cell_roots.push_back(cbor::Array{Value(workflow), digest_array(roots.cells)});
    if (!roots.instances.empty())
      instance_roots.push_back(cbor::Array{Value(workflow), digest_array(roots.instances)});
  }
  WorldHead bare = turn_.head;
  bare.marks = 0;  // counts snapshots, and is not part of what the world is
  TRY(Bytes manifest, parse_hash(turn_.world().manifest_hash));
  Value completeness = cbor::Map{{"manifest_hash", octets(manifest)},
                                 {"workflow_state_roots", cbor::Array{}},
                                 {"cell_index_roots", cell_roots},
                                 {"workspace_roots", cbor::Array{}},
                                 {"pinned_roots", cbor::Array{}}};
  // Lists that are always empty are fields of the peer's form that Pawl keeps elsewhere or not at
  // all.
  cbor::Map out{{"workflow_state", cbor::Array{}},
                {"workflow_index_roots", Value(cell_roots)},
                {"workflow_instance_roots", Value(std::move(instance_roots))},
                {"recent_receipts", cbor::Array{}},
                {"queued_effects", cbor::Array{}}};
  TRY_OK(list_cells(out, "pending_workflow_receipts", pending_prefix(turn_.id)));
  out.emplace_back("workflow_instances", cbor::Array{});
  TRY_OK(list_cells(out, "proposals", proposals_prefix(turn_.id)));
  out.emplace_back("height", turn_.head.height);
  out.emplace_back("logical_now_ns", turn_.head.logical_now);
  out.emplace_back("manifest_hash", octets(manifest));
  out.emplace_back("head", octets(encode(bare)));
  out.emplace_back("root_completeness", std::move(completeness));
  return cbor::encode(Value(std::move(out)));
}

// Adds a list of what the cells under a prefix hold. A long list goes into parts of its own.
Result<void> Snapshots::list_cells(cbor::Map& blob, std::string_view name, const Key& prefix) {
  cbor::Array list, parts;
  size_t bytes = 0;
  Result<void> bad;
  auto put = [&]() -> Result<void> {
    TRY(Bytes digest, turn_.blobs.put(cbor::encode(Value(std::exchange(list, {})))));
    parts.push_back(digest_array(digest));
    bytes = 0;
    return {};
  };
  TRY_OK(turn_.kernel.scan(prefix, [&](BytesView, const Cell& cell) {
    if (bytes + cell.value().size() > kMaxPartBytes && !list.empty()) bad = put();
    bytes += cell.value().size();
    list.push_back(octets(cell.value()));
    return bad.has_value();
  }));
  TRY_OK(bad);
  // A list that began to have parts lies in parts entirely.
  if (!parts.empty()) TRY_OK(put());
  blob.emplace_back(name, Value(std::move(list)));
  if (!parts.empty()) blob.emplace_back(std::string(name) + "_parts", Value(std::move(parts)));
  return {};
}

Result<void> walk_list(const IndexStore& store, const Value& snapshot, const std::string& name,
                       const std::function<Result<void>(BytesView item)>& visit,
                       const std::function<void(BytesView digest)>& part) {
  auto walk = [&](const Value* list) -> Result<void> {
    if (!list || !list->is_array())
      return fail(Code::corrupt, "snapshot.decode",
                  "snapshot cannot be restored: it lacks '" + name + "'");
    for (const Value& item : list->array()) {
      if (!item.is_bytes())
        return fail(Code::corrupt, "snapshot.decode",
                    "snapshot cannot be restored: an item of '" + name + "' is damaged");
      TRY_OK(visit(item.bytes()));
    }
    return {};
  };
  TRY_OK(walk(snapshot.find(name)));
  const Value* parts = snapshot.find(name + "_parts");
  if (!parts || !parts->is_array()) return {};
  for (const Value& at : parts->array()) {
    TRY(Bytes digest, parse_digest_array(&at));
    if (part) part(digest);
    TRY(Bytes bytes, store.get(digest));
    TRY(Value list, cbor::decode(bytes));
    TRY_OK(walk(&list));
  }
  return {};
}

Result<std::string> Snapshots::take() {
  TRY_OK(stepper_.drain());
  if (!turn_.mail.empty())
    return fail(Code::exhausted, kWorldBusy,
                "world '" + turn_.id.world + "' still works off deliveries: retry shortly");
  // Cells that changed since the last prepare() turn; few, when prepare() came first.
  TRY(std::optional<Key> left, materialize({}, SIZE_MAX, SIZE_MAX));
  // Without limits materialize() takes everything.
  CHECK(!left);
  TRY(Bytes blob, snapshot_blob());
  TRY(Bytes digest, turn_.blobs.put(blob));
  World& world = turn_.edit_world();
  world.snapshot_ref = hash_text(digest);
  world.snapshot_height = turn_.head.height;
  TRY_OK(record());
  return turn_.world().snapshot_ref;
}

// Records the newest snapshot, at its own height.
Result<void> Snapshots::record() {
  TRY(Bytes digest, parse_hash(turn_.world().snapshot_ref));
  turn_.kernel.write(snapshot_key(turn_.id, turn_.head.height), digest);
  return turn_.record(snapshot_record({turn_.world().snapshot_ref, turn_.world().manifest_hash,
                                       turn_.head.height, turn_.head.logical_now}),
                      {{"s", {}}});
}

Result<void> Snapshots::compact(uint64_t through) {
  if (through >= turn_.world().snapshot_height)
    return fail(Code::conflict, "conflict",
                "records are needed from the newest snapshot on (height " +
                    std::to_string(turn_.world().snapshot_height) + "): take a snapshot first");
  if (through + 1 <= turn_.world().retained_from) return {};
  turn_.kernel.note(encode_compaction(turn_.id, turn_.world().retained_from, through + 1));
  turn_.edit_world().retained_from = through + 1;
  // Blobs that only those records refer to need not be kept any more.
  std::vector<Key> gone;
  for (const Key& lead : {snapshots_prefix(turn_.id), reads_prefix(turn_.id)})
    TRY_OK(turn_.kernel.scan(lead, [&](BytesView at, const Cell&) {
      const bool old = read_ordered64(at.substr(lead.size())) <= through;
      if (old) gone.emplace_back(at);
      return old;
    }));
  for (const Key& key : gone)
    turn_.kernel.erase(key);
  return {};
}

}  // namespace pawl::worlds

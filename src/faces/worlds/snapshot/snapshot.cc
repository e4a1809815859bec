// A snapshot names everything a world is by hashes: the cells changed since the last one go into
// the index, and a small blob holds the roots and what is in flight. Equal worlds give equal bytes.

#include "faces/worlds/step/engine.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

// The fields are in canonical order.
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

// Of a list in a snapshot: a blob must fit in a cell.
constexpr size_t kPartBytes = 4 * 1024 * 1024;

// A cell that is gone and was well is forgotten.
bool is_kept(const Instance* instance) {
  return instance && (instance->state || instance->status != Status::completed);
}

}  // namespace

IndexStore Engine::index_store() {
  return {[this](BytesView digest) { return blobs_.get(digest); },
          [this](BytesView bytes) { return blobs_.put(bytes); }};
}

// One workflow's changed cells, in the order of the index, as far as `budget` goes; how many. Half
// of it is for states and records, and a quarter for the nodes of each index.
Result<size_t> Engine::bring_in(const std::string& workflow, std::span<const Marked> cells,
                                size_t& budget) {
  std::vector<IndexChange> states, records;
  std::vector<std::shared_ptr<const Instance>> instances;
  size_t bytes = 0;
  for (const Marked& marked : cells) {
    TRY(auto instance,
        turn_.read_as<Instance>(cell_key(place_, workflow, marked.key), decode_instance));
    const Bytes at(view(sha256(marked.key)));
    IndexChange cell{at, {}}, record{at, {}};
    if (instance && instance->state) {
      cell.entry = cell_entry(at, marked.key, view(sha256(*instance->state)),
                              instance->state->size(), instance->last_seq);
      bytes += instance->state->size();
    }
    if (is_kept(instance.get())) {
      Bytes stored = encode_for_snapshot(*instance);
      bytes += stored.size();
      record.entry = record_entry(at, marked.key, stored);
    }
    states.push_back(std::move(cell));
    records.push_back(std::move(record));
    instances.push_back(std::move(instance));
    if (bytes >= budget / 2) break;
  }
  const IndexStore store = index_store();
  World::Roots roots;
  if (auto it = world_->roots.find(workflow); it != world_->roots.end()) roots = it->second;
  TRY(Updated updated, update_index(store, roots.cells, states, budget / 4));
  records.resize(updated.taken);
  TRY(Updated beside, update_index(store, roots.instances, records, SIZE_MAX));
  roots = {std::move(updated.root), std::move(beside.root)};
  if (roots == World::Roots{})
    edit().roots.erase(workflow);
  else
    edit().roots[workflow] = std::move(roots);
  for (size_t i = 0; i < updated.taken; ++i) {
    turn_.erase(cells[i].mark);
    const Instance* instance = instances[i].get();
    if (instance && instance->state) {
      TRY(Bytes unused, blobs_.put(*instance->state));
      (void)unused;
    }
    if (!instance || is_kept(instance)) continue;
    turn_.erase(cell_key(place_, workflow, cells[i].key));
    --head_.completed;
  }
  budget -= std::min(budget, bytes + updated.bytes + beside.bytes);
  return updated.taken;
}

// The marks of one epoch that is over, from `from` on; where to go on, nothing when none is left.
Result<std::optional<Key>> Engine::take_epoch(uint64_t epoch, BytesView from, size_t& max,
                                              size_t& budget) {
  std::vector<Marked> marked;
  TRY_OK(turn_.scan(
      dirty_prefix(place_, epoch),
      [&](BytesView at, const Cell&) {
        CellAt where = marked_at(place_, at);
        marked.push_back({Key(at), std::move(where.workflow), std::move(where.key)});
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
    TRY(size_t taken, bring_in(marked[at].workflow,
                               std::span<const Marked>(marked).subspan(at, end - at), budget));
    at += taken;
    if (at == marked.size() || (at == end && budget > 0)) continue;
    next = marked[at].mark;
    break;
  }
  return next;
}

// Epoch after epoch, because what changes meanwhile is marked in a new one. Where the next turn
// goes on, nothing when no cell is marked any more.
Result<std::optional<Key>> Engine::materialize(BytesView from, size_t max, size_t budget) {
  TRY(Cell cell, turn_.read(epoch_key(place_)));
  const uint64_t first = cell.exists() ? read_ordered64(cell.value()) : 0;
  uint64_t epoch = first;
  std::optional<Key> next;
  while (!next) {
    if (epoch == head_.marks) {
      bool any = false;
      TRY_OK(turn_.scan(dirty_prefix(place_, epoch),
                        [&](BytesView, const Cell&) { return any = true, false; }));
      if (!any) break;
      ++head_.marks;
    }
    const Key begin = dirty_prefix(place_, epoch);
    if (max == 0 || budget == 0) {
      next = begin;
      break;
    }
    TRY(next, take_epoch(epoch, from.starts_with(begin) ? from : BytesView(begin), max, budget));
    if (!next) ++epoch;
  }
  if (epoch != first) turn_.write(epoch_key(place_), ordered64(epoch));
  return next;
}

// Where to go on: how many epochs were begun, then the mark. Each further epoch may take twice as
// much a turn, so that a snapshot comes to its end however fast cells change.
Result<std::optional<Key>> Engine::prepare_snapshot(std::optional<BytesView> from) {
  if (!from) TRY_OK(refuse_while_busy());
  const bool goes_on = from && !from->empty();
  uint64_t begun = goes_on ? static_cast<uint8_t>(from->front()) : 0;
  const uint64_t twice = std::max<uint64_t>(begun, 1) - 1;
  const uint64_t before = head_.marks;
  TRY(std::optional<Key> next, materialize(goes_on ? from->substr(1) : BytesView(),
                                           kCellsPerTurn << std::min<uint64_t>(twice, 5),
                                           kIndexBytesPerTurn << std::min<uint64_t>(twice, 3)));
  if (!next && !mail_.empty()) next.emplace();
  begun = std::min<uint64_t>(begun + head_.marks - before, 255);
  if (next) next->insert(0, 1, static_cast<char>(begun));
  return next;
}

Result<Bytes> Engine::snapshot_blob() {
  cbor::Array cell_roots, instance_roots;
  for (const auto& [workflow, roots] : world_->roots) {
    if (!roots.cells.empty())
      cell_roots.push_back(cbor::Array{Value(workflow), digest_array(roots.cells)});
    if (!roots.instances.empty())
      instance_roots.push_back(cbor::Array{Value(workflow), digest_array(roots.instances)});
  }
  Head bare = head_;
  bare.marks = 0;  // says how often, not what
  TRY(Bytes manifest, parse_hash(world_->manifest_hash));
  Value completeness = cbor::Map{{"manifest_hash", octets(manifest)},
                                 {"workflow_state_roots", cbor::Array{}},
                                 {"cell_index_roots", cell_roots},
                                 {"workspace_roots", cbor::Array{}},
                                 {"pinned_roots", cbor::Array{}}};
  cbor::Map out{{"workflow_state", cbor::Array{}},
                {"workflow_index_roots", Value(cell_roots)},
                {"workflow_instance_roots", Value(std::move(instance_roots))},
                {"recent_receipts", cbor::Array{}},
                {"queued_effects", cbor::Array{}}};
  TRY_OK(list_cells(out, "pending_workflow_receipts", pending_prefix(place_)));
  out.emplace_back("workflow_instances", cbor::Array{});
  TRY_OK(list_cells(out, "proposals", proposals_prefix(place_)));
  for (auto& [name, value] : cbor::Map{{"height", head_.height},
                                       {"logical_now_ns", head_.logical_now},
                                       {"manifest_hash", octets(manifest)},
                                       {"head", octets(encode(bare))},
                                       {"root_completeness", std::move(completeness)}})
    out.emplace_back(name, value);
  return cbor::encode(Value(std::move(out)));
}

// What cells hold, as a list; a long one in parts of their own.
Result<void> Engine::list_cells(cbor::Map& blob, std::string_view name, const Key& prefix) {
  cbor::Array list, parts;
  size_t bytes = 0;
  Result<void> bad;
  auto put = [&]() -> Result<void> {
    TRY(Bytes digest, blobs_.put(cbor::encode(Value(std::exchange(list, {})))));
    parts.push_back(digest_array(digest));
    bytes = 0;
    return {};
  };
  TRY_OK(turn_.scan(prefix, [&](BytesView, const Cell& cell) {
    if (bytes + cell.value().size() > kPartBytes && !list.empty()) bad = put();
    bytes += cell.value().size();
    list.push_back(octets(cell.value()));
    return bad.has_value();
  }));
  TRY_OK(bad);
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

Result<std::string> Engine::snapshot() {
  TRY_OK(drain());
  if (!mail_.empty())
    return fail(Code::exhausted, "busy",
                "world '" + place_.world + "' still works off deliveries: retry shortly");
  TRY(std::optional<Key> left, materialize({}, SIZE_MAX, SIZE_MAX));
  CHECK(!left);
  TRY(Bytes blob, snapshot_blob());
  TRY(Bytes digest, blobs_.put(blob));
  World& world = edit();
  world.snapshot_ref = hash_text(digest);
  world.snapshot_height = head_.height;
  TRY_OK(record_snapshot());
  return world_->snapshot_ref;
}

// At the height that the newest snapshot has.
Result<void> Engine::record_snapshot() {
  TRY(Bytes digest, parse_hash(world_->snapshot_ref));
  turn_.write(snapshot_key(place_, head_.height), digest);
  return record(snapshot_record(
                    {world_->snapshot_ref, world_->manifest_hash, head_.height, head_.logical_now}),
                {{"s", {}}});
}

Result<void> Engine::compact(uint64_t through) {
  if (through >= world_->snapshot_height)
    return fail(Code::conflict, "conflict",
                "records are needed from the newest snapshot on (height " +
                    std::to_string(world_->snapshot_height) + "): take a snapshot first");
  if (through + 1 <= world_->retained_from) return {};
  turn_.note(encode_compaction(place_, world_->retained_from, through + 1));
  edit().retained_from = through + 1;
  // What those records stood on is nothing to keep any more.
  std::vector<Key> gone;
  for (const Key& lead : {snapshots_prefix(place_), reads_prefix(place_)})
    TRY_OK(turn_.scan(lead, [&](BytesView at, const Cell&) {
      const bool old = read_ordered64(at.substr(lead.size())) <= through;
      if (old) gone.emplace_back(at);
      return old;
    }));
  for (const Key& key : gone)
    turn_.erase(key);
  return {};
}

}  // namespace pawl::worlds

// Garbage collection marks every blob that a world of the tenant can reach, and erases the others.
// The roots are definitions, proposals, open intents, and the kept snapshots with their indexes and
// states. Inside values it follows hashes by type and blob edges, never bytes that only look like a
// hash. It is one turn, so nothing changes meanwhile, and it reads every state of every kept
// snapshot.

#include <unordered_set>

#include "faces/worlds/air/hashes.h"
#include "faces/worlds/air/normalize.h"
#include "faces/worlds/program.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

class Marker {
 public:
  Marker(Turn& turn, const std::string& tenant, const Builtins& builtins)
      : turn_(turn), builtins_(builtins), blobs_(turn, tenant) {}

  bool marked(BytesView digest) const { return seen_.contains(Bytes(digest)); }

  Result<void> world(const WorldId& world_id, const World& world) {
    TRY(auto loaded, turn_.read_as<LoadedManifest>(air_key(world_id), [&](BytesView in) {
      return decode_bundle(in, builtins_);
    }));
    if (!loaded) return {};
    definitions(*loaded);
    manifests_[loaded->hash] = loaded;
    TRY(Bytes newest, parse_hash(world.snapshot_ref));
    TRY_OK(snapshot(newest));
    // These roots are ahead of the newest snapshot while another one is prepared.
    for (const auto& [name, roots] : world.roots) {
      TRY_OK(cells(*loaded, name, roots.cells));
      TRY_OK(instances(roots.instances));
    }
    // Cells that changed since the snapshot refer to blobs as well.
    TRY_OK(turn_.scan(cells_prefix(world_id), [&](BytesView at, const Cell& cell) {
      auto instance = decode_instance(cell.value());
      if (instance && instance->state)
        state(*loaded, cell_at(world_id, at).workflow, *instance->state);
      return true;
    }));
    TRY_OK(turn_.scan(pending_prefix(world_id), [&](BytesView, const Cell& cell) {
      pending(*loaded, cell.value());
      return true;
    }));
    std::vector<Proposal> proposals;
    TRY_OK(turn_.scan(proposals_prefix(world_id), [&](BytesView, const Cell& cell) {
      if (auto p = decode_proposal(cell.value())) proposals.push_back(std::move(*p));
      return true;
    }));
    for (const Proposal& p : proposals)
      proposal(p, world);
    return records(world_id);
  }

  // Marks what the marked blobs refer to, through edges and trees.
  Result<void> follow_edges() {
    while (!fresh_.empty()) {
      Bytes digest = std::move(fresh_.back());
      fresh_.pop_back();
      // A blob that is missing or damaged leads nowhere. The collection goes on.
      auto bytes = blobs_.get(digest);
      if (!bytes) continue;
      auto value = cbor::decode(*bytes);
      // Blobs have no type of their own, so trees and edges are known by their form. A file that
      // looks like one keeps some blobs alive that it need not.
      if (value && value->is_map() && mark_tree(*value)) continue;
      // An edge is {blob_ref, refs} (sys/BlobEdge@1): the blob that it belongs to, and those that
      // it needs.
      if (!value || !value->is_map() || value->map().size() != 2 || !value->find("blob_ref") ||
          !value->find("refs"))
        continue;
      mark_text(value->text_or("blob_ref"));
      if (const Value* refs = value->find("refs"); refs->is_array())
        for (const Value& ref : refs->array())
          if (ref.is_text()) mark_text(ref.text());
    }
    return {};
  }

 private:
  // Marks what kept records need to be replayed: older snapshots, and the blobs that records refer
  // to.
  Result<void> records(const WorldId& world_id) {
    std::vector<Bytes> snapshots;
    TRY_OK(turn_.scan(snapshots_prefix(world_id), [&](BytesView, const Cell& cell) {
      snapshots.emplace_back(cell.value());
      return true;
    }));
    for (const Bytes& digest : snapshots) {
      auto whole = snapshot(digest);
      // A snapshot whose blob is missing or whose manifest cannot be loaded cannot be forked from.
      // It does not stop the collection.
      if (!whole && whole.error().code != Code::not_found && whole.error().code != Code::invalid)
        return whole;
    }
    return turn_.scan(reads_prefix(world_id), [&](BytesView, const Cell& cell) {
      for (BytesView left = cell.value(); left.size() >= sizeof(Digest);
           left.remove_prefix(sizeof(Digest)))
        mark(Bytes(left.substr(0, sizeof(Digest))));
      return true;
    });
  }

  Result<void> snapshot(const Bytes& digest) {
    // Marked without mark(): the snapshot is walked right here and need not be followed later.
    seen_.insert(digest);
    if (!walked_.insert(digest).second) return {};
    TRY(Bytes bytes, blobs_.get(digest));
    TRY(Value blob, cbor::decode(bytes));
    const Value* manifest = blob.find("manifest_hash");
    TRY(std::shared_ptr<const LoadedManifest> loaded,
        loaded_by(manifest && manifest->is_bytes() ? hash_text(manifest->bytes()) : std::string()));
    definitions(*loaded);
    for (const auto& [workflow, root] : roots_of(blob, "workflow_index_roots"))
      TRY_OK(cells(*loaded, workflow, root));
    for (const auto& [workflow, root] : roots_of(blob, "workflow_instance_roots"))
      TRY_OK(instances(root));
    auto part = [&](BytesView at) { seen_.emplace(at); };
    TRY_OK(walk_list(
        store_, blob, "pending_workflow_receipts",
        [&](BytesView item) -> Result<void> {
          pending(*loaded, item);
          return {};
        },
        part));
    return walk_list(
        store_, blob, "proposals", [](BytesView) -> Result<void> { return {}; }, part);
  }

  static std::vector<std::pair<std::string, Bytes>> roots_of(const Value& blob,
                                                             std::string_view field) {
    std::vector<std::pair<std::string, Bytes>> out;
    const Value* list = blob.find(field);
    if (!list || !list->is_array()) return out;
    for (const Value& root : list->array()) {
      if (!root.is_array() || root.array().size() != 2 || !root.array()[0].is_text()) continue;
      if (auto at = parse_digest_array(&root.array()[1]))
        out.emplace_back(root.array()[0].text(), std::move(*at));
    }
    return out;
  }

  // Loads the manifest of a snapshot from the store.
  Result<std::shared_ptr<const LoadedManifest>> loaded_by(const std::string& hash) {
    auto& known = manifests_[hash];
    if (known) return known;
    TRY(Value manifest, stored(hash));
    TRY(Manifest parsed, parse_manifest(plain_json(manifest)));
    TRY(LoadedManifest loaded, load(
                                   std::move(parsed),
                                   [&](const std::string& node) -> Result<Node> {
                                     TRY(Value value, stored(node));
                                     return parse_node(plain_json(value));
                                   },
                                   builtins_));
    return known = std::make_shared<const LoadedManifest>(std::move(loaded));
  }

  Result<Value> stored(const std::string& hash) {
    TRY(Bytes digest, parse_hash(hash));
    TRY(Bytes bytes, blobs_.get(digest));
    return cbor::decode(bytes);
  }

  void definitions(const LoadedManifest& loaded) {
    mark_text(loaded.hash);
    for (const Node& node : loaded.nodes)
      mark_text(node_hash(node));
    for (const auto& [name, module] : loaded.modules)
      mark_text(module.def.artifact);
  }

  // Snapshots share most of their nodes, so a node is visited once per definition of its workflow.
  Result<void> cells(const LoadedManifest& loaded, const std::string& name, BytesView root) {
    const Workflow* workflow = loaded.workflow(name);
    auto enter = [&](BytesView digest) {
      seen_.emplace(digest);
      return walked_.insert(Bytes(digest).append(workflow ? workflow->hash : std::string())).second;
    };
    return walk_index(
        store_, root,
        [&](const Value& entry) -> Result<bool> {
          TRY(Bytes digest, parse_digest_array(entry.find("state_hash")));
          seen_.insert(digest);
          TRY(Bytes bytes, blobs_.get(digest));
          state(loaded, name, bytes);
          return true;
        },
        enter);
  }

  Result<void> instances(BytesView root) {
    auto enter = [&](BytesView digest) {
      seen_.emplace(digest);
      return walked_.emplace(digest).second;
    };
    return walk_index(
        store_, root, [](const Value&) -> Result<bool> { return true; }, enter);
  }

  void state(const LoadedManifest& loaded, const std::string& name, BytesView bytes) {
    const Workflow* workflow = loaded.workflow(name);
    auto value = cbor::decode(bytes);
    if (workflow && value) hashes(*value, *workflow->state, loaded);
  }

  void pending(const LoadedManifest& loaded, BytesView bytes) {
    auto intent = decode_pending(bytes);
    const DeclaredEffect* effect = intent ? loaded.effect(intent->identity.effect) : nullptr;
    const TypePtr type = effect ? loaded.schemas.find(effect->def.params) : nullptr;
    auto value = intent ? cbor::decode(intent->params) : Result<Value>(Value());
    if (type && value) hashes(*value, *type, loaded);
  }

  // A proposal that may still be applied keeps its definitions and modules. So does an applied one
  // while its records are kept. A rejected one keeps its definitions for that time.
  void proposal(const Proposal& p, const World& world) {
    mark_text(p.patch_hash);
    const bool over = p.state == ProposalState::applied || p.state == ProposalState::rejected;
    if (over && p.height < world.retained_from) return;
    auto value = stored(p.patch_hash);
    auto patch = value ? parse_patch(plain_json(*value)) : Result<Patch>(fail(value.error()));
    if (!patch) return;
    const Manifest& m = patch->manifest;
    for (const std::vector<Ref>* refs :
         {&m.schemas, &m.modules, &m.workflows, &m.effects, &m.secrets})
      for (const Ref& ref : *refs)
        mark_text(ref.hash);
    if (p.state == ProposalState::rejected) return;
    for (const Node& node : patch->nodes)
      module(node);
    for (const Ref& ref : m.modules) {
      auto body = stored(ref.hash);
      if (auto node = body ? parse_node(plain_json(*body)) : Result<Node>(fail(body.error())))
        module(*node);
    }
  }

  void module(const Node& node) {
    if (const auto* m = std::get_if<ModuleDef>(&node)) mark_text(m->artifact);
  }

  void mark_text(std::string_view hash) {
    if (auto digest = parse_hash(hash)) mark(std::move(*digest));
  }
  void mark(Bytes digest) {
    if (seen_.insert(digest).second) fresh_.push_back(std::move(digest));
  }

  // Marks the files, directories and annotations of a workspace tree; false when it is not a tree.
  bool mark_tree(const Value& value) {
    const Value* entries = value.find("entries");
    if (!entries || !entries->is_array()) return false;
    mark_text(value.text_or("annotations_hash"));
    for (const Value& e : entries->array()) {
      if (!e.is_map()) continue;
      mark_text(e.text_or("hash"));
      mark_text(e.text_or("annotations_hash"));
    }
    return true;
  }

  void hashes(const Value& value, const Type& type, const LoadedManifest& loaded) {
    each_hash(value, type, loaded.schemas, [this](const std::string& hash) { mark_text(hash); });
  }

  Turn& turn_;
  const Builtins& builtins_;
  Blobs blobs_;
  const IndexStore store_{[this](BytesView digest) { return blobs_.get(digest); },
                          // Marking never writes.
                          [](BytesView) -> Result<Bytes> { return Bytes(); }};
  std::map<std::string, std::shared_ptr<const LoadedManifest>> manifests_;
  std::unordered_set<Bytes> seen_;    // marked digests
  std::unordered_set<Bytes> walked_;  // snapshots and index nodes that were visited, per definition
  std::vector<Bytes> fresh_;          // marked, but not followed yet
};

}  // namespace

Result<GarbageCounts> collect_garbage(Turn& turn, const std::string& tenant,
                                      const Builtins& builtins, Time grace) {
  std::vector<World> worlds;
  TRY_OK(turn.scan(worlds_prefix(tenant), [&](BytesView, const Cell& cell) {
    if (auto world = decode_world(cell.value())) worlds.push_back(std::move(*world));
    return true;
  }));
  Marker marker(turn, tenant, builtins);
  for (const World& world : worlds)
    TRY_OK(marker.world({tenant, world.id}, world));
  TRY_OK(marker.follow_edges());
  GarbageCounts out;
  std::vector<Key> gone;
  const Key lead = blobs_prefix(tenant);
  TRY_OK(turn.scan(lead, [&](BytesView at, const Cell& cell) {
    Reader r(cell.value());
    const Time put = static_cast<Time>(r.fixed64());
    if (marker.marked(at.substr(lead.size())))
      ++out.kept;
    else if (put + grace > turn.now())
      ++out.young;
    else
      gone.emplace_back(at);
    return true;
  }));
  for (const Key& key : gone)
    turn.erase(key);
  out.erased = gone.size();
  return out;
}

}  // namespace pawl::worlds

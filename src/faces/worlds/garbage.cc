// Garbage collection walks from what worlds stand on: definitions, proposals, open work, and the
// newest snapshot with its indexes and states. Inside values it follows typed hashes and blob edges,
// never bytes that merely look like one.

#include <set>
#include <unordered_set>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/program.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

class Marker {
 public:
  Marker(Turn& turn, const std::string& tenant) : turn_(turn), tenant_(tenant), blobs_(turn, tenant) {}

  bool marked(BytesView digest) const { return seen_.contains(Bytes(digest)); }

  Result<void> world(const Place& place, const World& world, const Builtins& builtins) {
    TRY(auto loaded, turn_.read_as<Loaded>(air_key(place), [&](BytesView in) { return decode_bundle(in, builtins); }));
    if (!loaded) return {};
    mark_text(loaded->hash);
    for (const Node& node : loaded->nodes) mark_text(node_hash(node));
    for (const auto& [name, module] : loaded->modules) mark_text(module.def.artifact);
    mark_text(world.snapshot_ref);
    const IndexStore store{[&](BytesView digest) { return blobs_.get(digest); }, [](BytesView) -> Result<Bytes> { return Bytes(); }};
    std::set<std::pair<std::string, Bytes>> cells, instances;
    TRY_OK(roots_of(world.snapshot_ref, cells, instances));
    for (const auto& [name, roots] : world.roots) cells.emplace(name, roots.cells), instances.emplace(name, roots.instances);
    for (const auto& [name, root] : instances) TRY_OK(walk_nodes(store, root, [&](BytesView digest) { seen_.emplace(digest); }));
    for (const auto& [name, root] : cells) {
      TRY_OK(walk_nodes(store, root, [&](BytesView digest) { seen_.emplace(digest); }));
      const Workflow* workflow = loaded->workflow(name);
      TRY_OK(walk_index(store, root, [&](const Value& entry) -> Result<bool> {
        TRY(Bytes state, parse_digest_array(entry.find("state_hash")));
        seen_.insert(state);
        TRY(Bytes bytes, blobs_.get(state));
        auto value = cbor::decode(bytes);
        if (value && workflow) typed(*value, *workflow->state, loaded->schemas);
        return true;
      }));
    }
    // What changed since the snapshot refers to blobs as well.
    TRY_OK(turn_.scan(cells_prefix(place), [&](BytesView at, const Cell& cell) {
      const Workflow* workflow = loaded->workflow(cell_at(place, at).workflow);
      auto instance = decode_instance(cell.value());
      auto value = instance && instance->state ? cbor::decode(*instance->state) : Result<Value>(Value());
      if (value && workflow) typed(*value, *workflow->state, loaded->schemas);
      return true;
    }));
    TRY_OK(turn_.scan(pending_prefix(place), [&](BytesView, const Cell& cell) {
      auto intent = decode_pending(cell.value());
      const DeclaredEffect* effect = intent ? loaded->effect(intent->identity.effect) : nullptr;
      TypePtr type = effect ? loaded->schemas.find(effect->def.params) : nullptr;
      auto value = intent ? cbor::decode(intent->params) : Result<Value>(Value());
      if (type && value) typed(*value, *type, loaded->schemas);
      return true;
    }));
    std::vector<Proposal> proposals;
    TRY_OK(turn_.scan(proposals_prefix(place), [&](BytesView, const Cell& cell) {
      if (auto p = decode_proposal(cell.value())) proposals.push_back(std::move(*p));
      return true;
    }));
    for (const Proposal& p : proposals) TRY_OK(proposal(p));
    return {};
  }

  // Edges lead on to what their blobs refer to.
  Result<void> follow_edges() {
    while (!fresh_.empty()) {
      Bytes digest = std::move(fresh_.back());
      fresh_.pop_back();
      auto bytes = blobs_.get(digest);
      if (!bytes) continue;
      auto value = cbor::decode(*bytes);
      if (value && value->is_map() && mark_tree(*value)) continue;
      if (!value || !value->is_map() || value->map().size() != 2 || !value->find("blob_ref") || !value->find("refs")) continue;
      mark_text(value->text_or("blob_ref"));
      if (const Value* refs = value->find("refs"); refs->is_array())
        for (const Value& ref : refs->array())
          if (ref.is_text()) mark_text(ref.text());
    }
    return {};
  }

 private:
  // What may still be applied keeps what it would run by: definitions, given or in the store, and modules.
  Result<void> proposal(const Proposal& p) {
    mark_text(p.patch_hash);
    if (p.state == ProposalState::applied || p.state == ProposalState::rejected) return {};
    TRY(Bytes digest, parse_hash(p.patch_hash));
    auto bytes = blobs_.get(digest);
    auto value = bytes ? cbor::decode(*bytes) : Result<Value>(fail(bytes.error()));
    auto patch = value ? parse_patch(plain_json(*value)) : Result<Patch>(fail(value.error()));
    if (!patch) return {};
    for (const Node& node : patch->nodes) module(node);
    for (const Ref& ref : patch->manifest.modules) {
      auto at = parse_hash(ref.hash);
      auto stored = at ? blobs_.get(*at) : Result<Bytes>(fail(at.error()));
      auto body = stored ? cbor::decode(*stored) : Result<Value>(fail(stored.error()));
      if (auto node = body ? parse_node(plain_json(*body)) : Result<Node>(fail(body.error()))) module(*node);
    }
    const Manifest& m = patch->manifest;
    for (const std::vector<Ref>* refs : {&m.schemas, &m.modules, &m.workflows, &m.effects, &m.secrets})
      for (const Ref& ref : *refs) mark_text(ref.hash);
    return {};
  }

  void module(const Node& node) {
    if (const auto* m = std::get_if<ModuleDef>(&node)) mark_text(m->artifact);
  }

  // The roots that the newest snapshot names: those of the world run ahead while another is made.
  Result<void> roots_of(std::string_view ref, std::set<std::pair<std::string, Bytes>>& cells, std::set<std::pair<std::string, Bytes>>& instances) {
    TRY(Bytes digest, parse_hash(ref));
    TRY(Bytes bytes, blobs_.get(digest));
    TRY(Value blob, cbor::decode(bytes));
    for (const auto& [field, into] : {std::pair("workflow_index_roots", &cells), std::pair("workflow_instance_roots", &instances)}) {
      const Value* list = blob.find(field);
      if (!list || !list->is_array()) continue;
      for (const Value& root : list->array()) {
        if (!root.is_array() || root.array().size() != 2 || !root.array()[0].is_text()) continue;
        TRY(Bytes at, parse_digest_array(&root.array()[1]));
        into->emplace(root.array()[0].text(), std::move(at));
      }
    }
    return {};
  }

  void mark_text(std::string_view hash) {
    auto digest = parse_hash(hash);
    if (digest && seen_.insert(*digest).second) fresh_.push_back(std::move(*digest));
  }

  // A workspace's tree leads to its files, directories and annotations.
  bool mark_tree(const Value& value) {
    const Value* entries = value.find("entries");
    if (!entries || !entries->is_array()) return false;
    mark_text(value.text_or("annotations_hash"));
    for (const Value& e : entries->array())
      if (e.is_map()) mark_text(e.text_or("hash")), mark_text(e.text_or("annotations_hash"));
    return true;
  }

  void typed(const Value& value, const Type& type, const Schemas& schemas) {
    auto resolved = schemas.resolve(type);
    if (!resolved) return;
    const Type& t = **resolved;
    if (t.form == Form::hash && value.is_text()) return mark_text(value.text());
    if (t.form == Form::option && !value.is_null()) return typed(value, *t.item, schemas);
    if (value.is_array() && (t.form == Form::list || t.form == Form::set))
      for (const Value& item : value.array()) typed(item, *t.item, schemas);
    if (t.form == Form::variant) {
      const Field* arm = t.find(value.text_or("$tag"));
      const Value* inner = value.find("$value");
      if (arm && inner) typed(*inner, *arm->type, schemas);
    }
    if (!value.is_map()) return;
    for (const auto& [key, item] : value.map()) {
      if (t.form == Form::map) typed(key, *t.key, schemas), typed(item, *t.item, schemas);
      const Field* field = t.form == Form::record && key.is_text() ? t.find(key.text()) : nullptr;
      if (field) typed(item, *field->type, schemas);
    }
  }

  Turn& turn_;
  const std::string& tenant_;
  Blobs blobs_;
  std::unordered_set<Bytes> seen_;
  std::vector<Bytes> fresh_;
};

}  // namespace

Result<Collected> collect_garbage(Turn& turn, const std::string& tenant, const Builtins& builtins, Time grace) {
  std::vector<World> worlds;
  TRY_OK(turn.scan(worlds_prefix(tenant), [&](BytesView, const Cell& cell) {
    if (auto world = decode_world(cell.value())) worlds.push_back(std::move(*world));
    return true;
  }));
  Marker marker(turn, tenant);
  for (const World& world : worlds) TRY_OK(marker.world({tenant, world.id}, world, builtins));
  TRY_OK(marker.follow_edges());
  Collected out;
  std::vector<Key> gone;
  const Key lead = blobs_prefix(tenant);
  TRY_OK(turn.scan(lead, [&](BytesView at, const Cell& cell) {
    Reader r(cell.value());
    const Time put = static_cast<Time>(r.fixed64());
    if (marker.marked(at.substr(lead.size()))) ++out.kept;
    else if (put + grace > turn.now()) ++out.young;
    else gone.emplace_back(at);
    return true;
  }));
  for (const Key& key : gone) turn.erase(key);
  out.erased = gone.size();
  return out;
}

}  // namespace pawl::worlds

#include "faces/worlds/step/world_turn.h"

#include "faces/worlds/air/hashes.h"
#include "faces/worlds/air/normalize.h"
#include "json/text.h"

namespace pawl::worlds {

Bytes encode_bundle(const Manifest& manifest, const std::vector<Node>& nodes) {
  return cbor::canonical(to_value(Patch{manifest, nodes}));
}

Result<LoadedManifest> decode_bundle(BytesView bytes, const Builtins& builtins) {
  TRY(cbor::Value value, cbor::decode(bytes));
  TRY(Patch bundle, parse_patch(plain_json(value)));
  return load(std::move(bundle.manifest), finder(bundle.nodes), builtins);
}

WorldTurn::WorldTurn(Turn& kernel_turn, WorldId world_id, const WorldRuntime& world_runtime)
    : kernel(kernel_turn),
      id(std::move(world_id)),
      runtime(world_runtime),
      blobs(kernel_turn, id.tenant),
      head_at_(head_key(id)) {}

Result<void> WorldTurn::open() {
  TRY(auto stored, kernel.read_as<WorldHead>(head_at_, decode_head));
  if (!stored)
    return fail(Code::not_found, "not_found",
                "world '" + id.world + "' does not exist; list them with GET /v1/worlds");
  head = *stored;
  world_ = std::move(head.world);
  loaded_ = std::move(head.loaded);
  if (!world_) {
    TRY(world_, kernel.read_as<World>(world_key(id), decode_world));
  }
  if (!loaded_) {
    TRY(loaded_, kernel.read_as<LoadedManifest>(air_key(id), [&](BytesView in) {
      return decode_bundle(in, runtime.builtins);
    }));
  }
  CHECK(world_ && loaded_);
  if (head.queued == 0) return {};
  return take_queued();
}

Result<void> WorldTurn::take_queued() {
  std::vector<Key> taken;
  Result<void> bad;
  TRY_OK(kernel.scan(queued_prefix(id), [&](BytesView at, const Cell& cell) {
    auto queued = decode_queued(cell.value());
    const Workflow* workflow = queued ? loaded_->workflow(queued->workflow) : nullptr;
    if (!workflow) {
      bad =
          fail(Code::corrupt, "store.error", "a queued delivery names no workflow of the manifest");
      return false;
    }
    mail.push({workflow, std::move(queued->event), std::move(queued->moment)});
    taken.emplace_back(at);
    return true;
  }));
  if (!bad) return bad;
  for (const Key& key : taken)
    kernel.erase(key);
  return {};
}

Result<void> WorldTurn::close() {
  head.queued = 0;
  // The order is kept, so that the next turn goes on exactly where this one stopped.
  while (!mail.empty()) {
    Delivery item = mail.pop();
    kernel.write(queued_key(id, head.queued++),
                 encode(QueuedDelivery{item.workflow->def.name, Bytes(item.key()), item.event,
                                       item.moment}));
  }
  if (head.queued == 0)
    head.chain = 0;
  else
    kernel.open(Effect{
        effect_id(id, "drain-" + std::to_string(head.height) + "-" + std::to_string(head.steps)),
        To::cell, std::string(kProgram), id.tenant, "drain", 0, id.world});
  Bytes bytes = encode(head);
  head.world = world_;
  head.loaded = loaded_;
  kernel.write(head_at_, std::move(bytes), std::make_shared<const WorldHead>(head));
  if (world_changed_) kernel.write(world_key(id), encode(*world_), world_);
  return {};
}

Result<void> WorldTurn::begin(World world) {
  TRY(Cell there, kernel.read(world_key(id)));
  if (there.exists())
    return fail(Code::conflict, "conflict",
                "world '" + id.world + "' exists already: choose another id");
  world_ = std::make_shared<const World>(std::move(world));
  world_changed_ = true;
  return {};
}

void WorldTurn::next_input() {
  budget = {};
  head.chain = 0;
}

World& WorldTurn::edit_world() {
  auto next = std::make_shared<World>(*world_);
  world_ = next;
  world_changed_ = true;
  return *next;
}

wasm::Limits WorldTurn::step_limits() const {
  const wasm::Limits& own = world_->limits;
  return {std::min(own.fuel, kMaxFuelPerStep), std::min(own.memory_bytes, kMaxMemoryPerStep)};
}

bool WorldTurn::has_fuel() const {
  return turn_fuel_ == 0 || turn_fuel_ + step_limits().fuel <= kMaxFuelPerTurn;
}

Result<void> WorldTurn::check_fuel() const {
  if (has_fuel()) return {};
  return fail(Code::exhausted, kFuelUsedUp,
              "one request may use " + std::to_string(kMaxFuelPerTurn) +
                  " fuel in all its steps: send fewer events at once, or take a snapshot and start "
                  "from there");
}

void WorldTurn::use_fuel(uint64_t fuel) { turn_fuel_ += fuel; }

Result<void> WorldTurn::refuse_while_busy() const {
  TRY_OK(check_fuel());
  if (mail.empty()) return {};
  return fail(Code::exhausted, kWorldBusy,
              "world '" + id.world + "' still works off " + std::to_string(mail.size()) +
                  " deliveries of a former event: retry shortly");
}

void WorldTurn::rewind(const Savepoint& to) {
  kernel.rewind(to.mark);
  head = to.head;
  world_ = to.world;
  loaded_ = to.loaded;
}

Result<void> WorldTurn::use_manifest(LoadedManifest loaded) {
  edit_world().manifest_hash = loaded.hash;
  for (const Node& node : loaded.nodes)
    TRY_OK(blobs.put(cbor::canonical(to_value(node, true))));
  TRY_OK(blobs.put(cbor::canonical(to_value(loaded.manifest, false))));
  Bytes bundle = encode_bundle(loaded.manifest, loaded.nodes);
  loaded_ = std::make_shared<const LoadedManifest>(std::move(loaded));
  kernel.write(air_key(id), std::move(bundle), loaded_);
  return {};
}

void WorldTurn::borrow_manifest(LoadedManifest loaded) {
  loaded_ = std::make_shared<const LoadedManifest>(std::move(loaded));
  edit_world().manifest_hash = loaded_->hash;
}

Result<LoadedManifest> WorldTurn::load_manifest(const Manifest& manifest,
                                                const std::vector<Node>& extra) const {
  std::map<std::string, const Node*> known;
  if (loaded_)
    for (const Node& node : loaded_->nodes)
      known[node_hash(node)] = &node;
  for (const Node& node : extra)
    known[node_hash(node)] = &node;
  return load(
      manifest,
      [&](const std::string& hash) -> Result<Node> {
        if (auto it = known.find(hash); it != known.end()) return *it->second;
        TRY(Bytes digest, parse_hash(hash));
        TRY(Bytes bytes, blobs.get(digest));
        TRY(cbor::Value value, cbor::decode(bytes));
        return parse_node(plain_json(value));
      },
      runtime.builtins);
}

Result<Bytes> WorldTurn::fetch(const Module& module) const {
  TRY(Bytes digest, parse_hash(module.def.artifact));
  return blobs.get(digest);
}

// Live, the moment is the stamp of the turn; in a replay, the one recorded at this height.
Moment WorldTurn::next_moment() {
  if (const Bytes* payload = recorded ? recorded->at(head.height) : nullptr) {
    auto value = cbor::decode(*payload);
    auto moment = value ? moment_of(*value) : Result<Moment>(fail(value.error()));
    if (moment && moment->height == head.height) {
      head.logical_now = moment->logical_now_ns;
      return *moment;
    }
  }
  const Time now = kernel.now();
  const uint64_t since_creation =
      now > world_->created ? static_cast<uint64_t>(now - world_->created) : 0;
  head.logical_now = std::max(head.logical_now, since_creation);
  Moment moment;
  moment.now_ns = static_cast<uint64_t>(now);
  moment.logical_now_ns = head.logical_now;
  moment.height = head.height;
  moment.chance = ordered64(kernel.dice().next());
  moment.chance.append(ordered64(kernel.dice().next()));
  moment.manifest_hash = world_->manifest_hash;
  return moment;
}

Result<void> WorldTurn::check_replay(BytesView payload) const {
  const Bytes* then = recorded ? recorded->at(head.height) : nullptr;
  if (!then || *then == payload) return {};
  return fail(Code::corrupt, "journal.error",
              "journal.error: replay of world '" + id.world + "' diverged at height " +
                  std::to_string(head.height) + ": the record made now is not the one made then");
}

Result<void> WorldTurn::record(BytesView payload, const Pointers& pointers) {
  TRY_OK(check_replay(payload));
  kernel.note(encode_note(id, head.height, payload, pointers));
  ++head.height;
  return {};
}

cbor::Value WorldTurn::recorded_here() const {
  const Bytes* payload = recorded ? recorded->at(head.height) : nullptr;
  auto record = payload ? cbor::decode(*payload) : Result<cbor::Value>(cbor::Value());
  return record ? std::move(*record) : cbor::Value();
}

void WorldTurn::keep_blobs(BytesView bytes, const std::string& schema, std::string_view except) {
  if (!loaded_->schemas.can_hold_hash(schema)) return;
  auto value = cbor::decode(bytes);
  if (!value) return;
  Bytes kept;
  each_hash(*value, *loaded_->schemas.find(schema), loaded_->schemas, [&](const std::string& hash) {
    if (hash == except) return;
    if (auto digest = parse_hash(hash)) kept += *digest;
  });
  if (!kept.empty()) kernel.write(reads_key(id, head.height), std::move(kept));
}

Result<CellEdit> WorldTurn::read_cell(const Workflow& workflow, BytesView key) {
  CellEdit out{cell_key(id, workflow.def.name, key), {}, {}};
  TRY(out.before, kernel.read_as<Instance>(out.where, decode_instance));
  if (out.before) out.now = *out.before;
  return out;
}

static uint64_t& count_of(WorldHead& head, InstanceStatus status) {
  switch (status) {
    case InstanceStatus::waiting: return head.waiting;
    case InstanceStatus::completed: return head.completed;
    case InstanceStatus::failed: return head.failed;
    default: return head.running;
  }
}

void WorldTurn::save(std::string_view workflow, BytesView key, CellEdit edit) {
  if (edit.before) --count_of(head, edit.before->status);
  ++count_of(head, edit.now.status);
  if (edit.now.dirty != head.marks + 1) {
    edit.now.dirty = head.marks + 1;
    const Key mark = dirty_key(id, head.marks, workflow, key);
    // An instance that exists knows its mark. A cell that was deleted and comes again may have one.
    if (edit.before)
      kernel.write_new(mark, {});
    else
      kernel.write(mark, {});
  }
  if (shadow) shadow->touched[{std::string(workflow), Bytes(key)}] = edit.now.state;
  Bytes bytes = encode(edit.now);
  kernel.write(edit.where, std::move(bytes), std::make_shared<const Instance>(std::move(edit.now)));
}

Result<std::shared_ptr<const PendingIntent>> WorldTurn::pending(BytesView intent) {
  return kernel.read_as<PendingIntent>(pending_key(id, intent), decode_pending);
}

Result<std::vector<PendingIntent>> WorldTurn::all_pending(size_t max) {
  std::vector<PendingIntent> out;
  TRY_OK(kernel.scan(pending_prefix(id), [&](BytesView, const Cell& cell) {
    if (auto intent = decode_pending(cell.value())) out.push_back(std::move(*intent));
    return out.size() < max;
  }));
  return out;
}

}  // namespace pawl::worlds

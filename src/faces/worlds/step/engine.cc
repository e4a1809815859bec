#include "faces/worlds/step/engine.h"

#include "faces/worlds/air/hashes.h"
#include "faces/worlds/air/normalize.h"
#include "json/text.h"

namespace pawl::worlds {

Bytes encode_bundle(const Manifest& manifest, const std::vector<Node>& nodes) {
  return cbor::canonical(to_value(Patch{manifest, nodes}));
}

Result<Loaded> decode_bundle(BytesView bytes, const Builtins& builtins) {
  TRY(cbor::Value value, cbor::decode(bytes));
  TRY(Patch bundle, parse_patch(plain_json(value)));
  return load(std::move(bundle.manifest), finder(bundle.nodes), builtins);
}

Engine::Engine(Turn& turn, Place place, const Runtime& runtime)
    : turn_(turn),
      place_(std::move(place)),
      head_at_(head_key(place_)),
      runtime_(runtime),
      blobs_(turn, place_.tenant) {}

Result<void> Engine::open() {
  TRY(auto head, turn_.read_as<Head>(head_at_, decode_head));
  if (!head)
    return fail(Code::not_found, "not_found",
                "world '" + place_.world + "' does not exist; list them with GET /v1/worlds");
  head_ = *head;
  world_ = std::move(head_.world);
  loaded_ = std::move(head_.loaded);
  if (!world_) {
    TRY(world_, turn_.read_as<World>(world_key(place_), decode_world));
  }
  if (!loaded_) {
    TRY(loaded_, turn_.read_as<Loaded>(air_key(place_), [&](BytesView in) {
      return decode_bundle(in, runtime_.builtins);
    }));
  }
  CHECK(world_ && loaded_);
  if (head_.queued == 0) return {};
  return take_queued();
}

Result<void> Engine::take_queued() {
  const Key first = queued_prefix(place_);
  std::vector<Key> taken;
  Result<void> bad;
  TRY_OK(turn_.scan(first, [&](BytesView at, const Cell& cell) {
    auto queued = decode_queued(cell.value());
    const Workflow* workflow = queued ? loaded_->workflow(queued->workflow) : nullptr;
    if (!workflow) {
      bad =
          fail(Code::corrupt, "store.error", "a queued delivery names no workflow of the manifest");
      return false;
    }
    mail_.push({workflow, std::move(queued->event), std::move(queued->moment)});
    taken.emplace_back(at);
    return true;
  }));
  if (!bad) return bad;
  for (const Key& key : taken)
    turn_.erase(key);
  return {};
}

Result<void> Engine::close() {
  head_.queued = 0;
  // In their order, so that the next turn goes on exactly where this one stopped.
  while (!mail_.empty()) {
    Delivery item = mail_.pop();
    turn_.write(
        queued_key(place_, head_.queued++),
        encode(Queued{item.workflow->def.name, Bytes(item.key()), item.event, item.moment}));
  }
  if (head_.queued == 0)
    head_.chain = 0;
  else
    turn_.open(Effect{effect_id(place_, "drain-" + std::to_string(head_.height) + "-" +
                                            std::to_string(head_.steps)),
                      To::cell, std::string(kProgram), place_.tenant, "drain", 0, place_.world});
  Bytes bytes = encode(head_);
  head_.world = world_, head_.loaded = loaded_;
  turn_.write(head_at_, std::move(bytes), std::make_shared<const Head>(head_));
  if (world_changed_) turn_.write(world_key(place_), encode(*world_), world_);
  return {};
}

// A copy of its own: what others hold is never changed.
World& Engine::edit() {
  auto next = std::make_shared<World>(*world_);
  world_ = next;
  world_changed_ = true;
  return *next;
}

Result<void> Engine::refuse_while_busy() const {
  if (mail_.empty()) return {};
  return fail(Code::exhausted, "busy",
              "world '" + place_.world + "' still works off " + std::to_string(mail_.size()) +
                  " deliveries of a former event: retry shortly");
}

Result<void> Engine::create(World world, const Authored& air) {
  TRY(Cell there, turn_.read(world_key(place_)));
  if (there.exists())
    return fail(Code::conflict, "conflict",
                "world '" + place_.world + "' exists already: choose another id");
  TRY(Loaded loaded, load(air.manifest, finder(air.nodes), runtime_.builtins));
  world.created = turn_.now();
  world_ = std::make_shared<const World>(std::move(world));
  world_changed_ = true;
  TRY_OK(use_manifest(std::move(loaded)));
  TRY_OK(record(manifest_record(world_->manifest_hash)));
  TRY(std::string ref, snapshot());
  (void)ref;
  return {};
}

Result<void> Engine::adopt(World world) {
  TRY(Cell there, turn_.read(world_key(place_)));
  if (there.exists())
    return fail(Code::conflict, "conflict",
                "world '" + place_.world + "' exists already: choose another id");
  world_ = std::make_shared<const World>(std::move(world));
  world_changed_ = true;
  return {};
}

// Definitions go into the store, so that a later patch or fork finds them by hash.
Result<void> Engine::use_manifest(Loaded loaded) {
  edit().manifest_hash = loaded.hash;
  for (const Node& node : loaded.nodes) {
    TRY(Bytes unused, blobs_.put(cbor::canonical(to_value(node, true))));
    (void)unused;
  }
  TRY(Bytes unused, blobs_.put(cbor::canonical(to_value(loaded.manifest, false))));
  (void)unused;
  Bytes bundle = encode_bundle(loaded.manifest, loaded.nodes);
  auto shared = std::make_shared<const Loaded>(std::move(loaded));
  turn_.write(air_key(place_), std::move(bundle), shared);
  loaded_ = std::move(shared);
  return {};
}

Result<Loaded> Engine::load_manifest(const Manifest& manifest,
                                     const std::vector<Node>& extra) const {
  std::map<std::string, const Node*> at_hand;
  if (loaded_)
    for (const Node& node : loaded_->nodes)
      at_hand[node_hash(node)] = &node;
  for (const Node& node : extra)
    at_hand[node_hash(node)] = &node;
  return load(
      manifest,
      [&](const std::string& hash) -> Result<Node> {
        if (auto it = at_hand.find(hash); it != at_hand.end()) return *it->second;
        TRY(Bytes digest, parse_hash(hash));
        TRY(Bytes bytes, blobs_.get(digest));
        TRY(cbor::Value value, cbor::decode(bytes));
        return parse_node(plain_json(value));
      },
      runtime_.builtins);
}

Result<Bytes> Engine::fetch(const Module& module) const {
  TRY(Bytes digest, parse_hash(module.def.artifact));
  return blobs_.get(digest);
}

// Live, the stamp of the turn; in a replay, the one that was recorded at this height.
Moment Engine::next_moment() {
  if (const Bytes* payload = recorded_ ? recorded_->at(head_.height) : nullptr) {
    auto value = cbor::decode(*payload);
    auto moment = value ? moment_of(*value) : Result<Moment>(fail(value.error()));
    if (moment && moment->height == head_.height) {
      head_.logical_now = moment->logical_now_ns;
      return *moment;
    }
  }
  Moment m;
  m.now_ns = static_cast<uint64_t>(turn_.now());
  const uint64_t since =
      turn_.now() > world_->created ? static_cast<uint64_t>(turn_.now() - world_->created) : 0;
  m.logical_now_ns = head_.logical_now = std::max(head_.logical_now, since);
  m.height = head_.height;
  m.chance = ordered64(turn_.dice().next());
  m.chance.append(ordered64(turn_.dice().next()));
  m.manifest_hash = world_->manifest_hash;
  return m;
}

Result<void> Engine::agree(BytesView payload) const {
  const Bytes* recorded = recorded_ ? recorded_->at(head_.height) : nullptr;
  if (!recorded || *recorded == payload) return {};
  return fail(Code::corrupt, "journal.error",
              "journal.error: replay of world '" + place_.world + "' diverged at height " +
                  std::to_string(head_.height) + ": the record made now is not the one made then");
}

Result<void> Engine::record(BytesView payload, const Pointers& pointers) {
  TRY_OK(agree(payload));
  turn_.note(encode_note(place_, head_.height, payload, pointers));
  ++head_.height;
  return {};
}

// Whoever runs the record that comes next again, or forks a world after it, finds what its value
// speaks of.
void Engine::keep_blobs(BytesView bytes, const std::string& schema, std::string_view but) {
  if (!loaded_->schemas.can_hold_hash(schema)) return;
  auto value = cbor::decode(bytes);
  if (!value) return;
  Bytes kept;
  each_hash(*value, *loaded_->schemas.find(schema), loaded_->schemas, [&](const std::string& hash) {
    auto digest = hash == but ? Result<Bytes>(Bytes()) : parse_hash(hash);
    if (digest) kept += *digest;
  });
  if (!kept.empty()) turn_.write(reads_key(place_, head_.height), std::move(kept));
}

Result<Engine::Cells> Engine::read_cell(const Workflow& workflow, BytesView key) {
  Cells out{cell_key(place_, workflow.def.name, key), {}, {}};
  TRY(out.before, turn_.read_as<Instance>(out.where, decode_instance));
  if (out.before) out.now = *out.before;
  return out;
}

static uint64_t& count_of(Head& head, Status status) {
  switch (status) {
    case Status::waiting: return head.waiting;
    case Status::completed: return head.completed;
    case Status::failed: return head.failed;
    default: return head.running;
  }
}

void Engine::save(std::string_view workflow, BytesView key, Cells cells) {
  if (cells.before) --count_of(head_, cells.before->status);
  ++count_of(head_, cells.now.status);
  if (cells.now.dirty != head_.marks + 1) {
    cells.now.dirty = head_.marks + 1;
    const Key mark = dirty_key(place_, head_.marks, workflow, key);
    // Its instance would know the mark. Of one that was forgotten and comes again there may be one.
    if (cells.before)
      turn_.write_new(mark, {});
    else
      turn_.write(mark, {});
  }
  if (shadowing_) touched_[{std::string(workflow), Bytes(key)}] = cells.now.state;
  Bytes bytes = encode(cells.now);
  turn_.write(cells.where, std::move(bytes),
              std::make_shared<const Instance>(std::move(cells.now)));
}

}  // namespace pawl::worlds

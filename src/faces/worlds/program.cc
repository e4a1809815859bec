#include "faces/worlds/program.h"

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/store/notes.h"
#include "faces/worlds/store/workspace.h"
#include "json/text.h"

namespace pawl::worlds {

const WorldsProgram::Row WorldsProgram::kVerbs[] = {
    {"event", &WorldsProgram::event},         {"receipt", &WorldsProgram::receipt},
    {"timer", &WorldsProgram::timer},         {"frame", &WorldsProgram::frame},
    {"drain", &WorldsProgram::drain},         {"create", &WorldsProgram::create},
    {"snapshot", &WorldsProgram::snapshot},   {"compact", &WorldsProgram::compact},
    {"govern", &WorldsProgram::govern},       {"fork", &WorldsProgram::fork},
    {"put_blob", &WorldsProgram::put_blob},   {"put_secret", &WorldsProgram::put_secret},
    {"collect", &WorldsProgram::collect},     {"events", &WorldsProgram::events},
    {"workspace", &WorldsProgram::workspace}, {"unpoint", &WorldsProgram::unpoint},
};

Result<Bytes> WorldsProgram::run(Turn& turn, const Input& input) const {
  for (const Row& row : kVerbs)
    if (row.name == input.verb) return (this->*row.verb)(turn, input);
  return fail(Code::unsupported, "invalid_request", "worlds has no verb '" + input.verb + "'");
}

void WorldsProgram::view(const Committed& frame, ViewRows& rows) const {
  for (const Bytes& note : frame.notes)
    put_rows(note, rows);
}

// A receipt belongs to the tenant of its effect, whatever tenant its caller has.
static WorldId world_of(const Input& input, std::string world) {
  if (auto effect = parse_effect_id(input.settles)) return effect->world_id;
  return {input.caller.tenant, std::move(world)};
}

Result<Bytes> WorldsProgram::create(Turn& turn, const Input& input) const {
  TRY(CreateWorld v, decode_create(input.body));
  TRY(cbor::Value bundle, cbor::decode(v.bundle));
  TRY(Patch air, parse_patch(plain_json(bundle)));
  WorldSession session(turn, {input.caller.tenant, v.world}, runtime_);
  World world;
  world.id = v.world;
  world.engine = v.engine;
  world.limits = v.limits;
  world.check_state = v.check_state;
  TRY_OK(session.create(std::move(world), {std::move(air.manifest), std::move(air.nodes)}));
  TRY_OK(session.turn.close());
  return json::print(json::object({{"world_id", v.world},
                                   {"manifest_hash", session.turn.world().manifest_hash},
                                   {"height", session.turn.head.height},
                                   {"snapshot_ref", session.turn.world().snapshot_ref},
                                   {"created_at_ns", static_cast<int64_t>(turn.now())}}));
}

Result<Bytes> WorldsProgram::event(Turn& turn, const Input& input) const {
  TRY(SendEvent v, decode_send(input.body));
  WorldSession session(turn, {input.caller.tenant, v.world}, runtime_);
  TRY_OK(session.turn.open());
  if (v.expected_epoch != 0 && v.expected_epoch != session.turn.world().epoch)
    return fail(Code::conflict, "conflict",
                "world '" + v.world + "' is in epoch " +
                    std::to_string(session.turn.world().epoch) + ", not " +
                    std::to_string(v.expected_epoch) + ": its manifest has changed");
  TRY(AcceptedEvent accepted, session.ingress.accept_event(std::move(v.event)));
  TRY_OK(session.turn.close());
  std::string out = "{\"event_hash\":\"" + accepted.event_hash +
                    "\",\"seq\":" + std::to_string(accepted.height) +
                    ",\"height\":" + std::to_string(session.turn.head.height);
  return out + ",\"queued\":" + std::to_string(session.turn.head.queued) + "}";
}

Result<Bytes> WorldsProgram::events(Turn& turn, const Input& input) const {
  TRY(SendEvents v, decode_send_all(input.body));
  if (v.events.size() > kBatchEvents)
    return fail(Code::too_large, "invalid_request",
                "a batch takes at most " + std::to_string(kBatchEvents) + " events");
  WorldSession session(turn, {input.caller.tenant, v.world}, runtime_);
  TRY_OK(session.turn.open());
  std::string out = "{\"events\":[";
  for (size_t i = 0; i < v.events.size(); ++i) {
    session.turn.next_input();
    auto accepted = session.ingress.accept_event(std::move(v.events[i]));
    if (!accepted) {
      accepted.error().message =
          "event " + std::to_string(i) + " of the batch: " + accepted.error().message;
      return fail(std::move(accepted.error()));
    }
    out += std::string(i ? "," : "") + "{\"event_hash\":\"" + accepted->event_hash +
           "\",\"seq\":" + std::to_string(accepted->height) + "}";
  }
  TRY_OK(session.turn.close());
  return out + "],\"height\":" + std::to_string(session.turn.head.height) +
         ",\"queued\":" + std::to_string(session.turn.head.queued) + "}";
}

Result<Bytes> WorldsProgram::receipt(Turn& turn, const Input& input) const {
  TRY(SendReceipt v, decode_receipt(input.body));
  WorldSession session(turn, world_of(input, v.world), runtime_);
  TRY_OK(session.turn.open());
  TRY_OK(session.ingress.accept_receipt(std::move(v.receipt)));
  TRY_OK(session.turn.close());
  return json::print(json::object({{"status", "settled"}, {"height", session.turn.head.height}}));
}

Result<Bytes> WorldsProgram::timer(Turn& turn, const Input& input) const {
  auto effect = parse_effect_id(input.settles);
  if (!effect)
    return fail(Code::invalid, "receipt.decode", "'" + input.settles + "' is no timer of worlds");
  TRY(Bytes intent, unhex(effect->what));
  WorldSession session(turn, effect->world_id, runtime_);
  TRY_OK(session.turn.open());
  TRY_OK(session.ingress.fire_timer(intent));
  TRY_OK(session.turn.close());
  return Bytes();
}

Result<Bytes> WorldsProgram::frame(Turn& turn, const Input& input) const {
  TRY(SendFrame v, decode_frame_body(input.body));
  WorldSession session(turn, {input.caller.tenant, v.world}, runtime_);
  TRY_OK(session.turn.open());
  TRY(bool taken, session.ingress.accept_frame(std::move(v.frame)));
  TRY_OK(session.turn.close());
  return json::print(json::object(
      {{"status", taken ? "accepted" : "dropped"}, {"height", session.turn.head.height}}));
}

Result<Bytes> WorldsProgram::drain(Turn& turn, const Input& input) const {
  WorldSession session(turn, world_of(input, input.body), runtime_);
  TRY_OK(session.turn.open());
  TRY_OK(session.stepper.drain());
  TRY_OK(session.turn.close());
  return Bytes();
}

// Takes several turns when many cells have changed. The last of them answers the caller.
Result<Bytes> WorldsProgram::snapshot(Turn& turn, const Input& input) const {
  const bool goes_on = !input.settles.empty();
  const Turn::Mark mark = turn.mark();
  auto taken = goes_on ? take_snapshot(turn, world_of(input, {}), BytesView(input.body))
                       : take_snapshot(turn, {input.caller.tenant, input.body}, {});
  if (taken || !goes_on) return taken;
  // This input is not sent again, and the caller still waits: answer with the error.
  turn.rewind(mark);
  turn.refuse(std::move(taken.error()));
  return Bytes();
}

Result<Bytes> WorldsProgram::take_snapshot(Turn& turn, const WorldId& world_id,
                                           std::optional<BytesView> from) const {
  WorldSession session(turn, world_id, runtime_);
  TRY_OK(session.turn.open());
  TRY(std::optional<Key> left, session.snapshots.prepare(from));
  if (left) {
    const std::string next = effect_id(world_id, "snapshot-" + std::to_string(turn.dice().next()));
    turn.open(Effect{next, To::cell, std::string(kProgram), world_id.tenant, "snapshot", 0,
                     std::move(*left)});
    turn.answer_later(next);
    TRY_OK(session.turn.close());
    return Bytes();
  }
  TRY(std::string ref, session.snapshots.take());
  TRY_OK(session.turn.close());
  return json::print(json::object({{"snapshot_ref", ref},
                                   {"height", session.turn.world().snapshot_height},
                                   {"manifest_hash", session.turn.world().manifest_hash}}));
}

Result<Bytes> WorldsProgram::compact(Turn& turn, const Input& input) const {
  Reader r(input.body);
  std::string world(r.str());
  const uint64_t through = r.uint();
  WorldSession session(turn, {input.caller.tenant, world}, runtime_);
  TRY_OK(session.turn.open());
  TRY_OK(session.snapshots.compact(through));
  TRY_OK(session.turn.close());
  return json::print(json::object({{"retained_from", session.turn.world().retained_from}}));
}

// Forgets pointers to records that are compacted away. The body is the world and the pointers.
Result<Bytes> WorldsProgram::unpoint(Turn& turn, const Input& input) const {
  Reader r(input.body);
  const WorldId world_id{input.caller.tenant, std::string(r.str())};
  TRY(auto world, turn.read_as<World>(world_key(world_id), decode_world));
  if (!world) return fail(Code::not_found, "not_found", "the world is gone");
  std::vector<Bytes> pointers;
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    const BytesView pointer = r.str();
    if (pointer.size() < 8 ||
        read_ordered64(pointer.substr(pointer.size() - 8)) >= world->retained_from)
      return fail(Code::invalid, "invalid_request", "a pointer names a record that is kept");
    pointers.emplace_back(pointer);
  }
  if (!r.done()) return fail(Code::invalid, "invalid_request", "the pointers cannot be read");
  turn.note(encode_unpointing(world_id, pointers));
  return Bytes();
}

json::Value proposal_json(const Proposal& p) {
  json::Object out;
  out.add("proposal_id", p.id);
  out.add("state", json::Value(name_of(p.state)));
  out.add("patch_hash", p.patch_hash);
  out.add("manifest_hash", p.manifest_hash);
  out.add("description", p.described ? json::Value(p.description) : json::Value());
  if (!p.approver.empty()) out.add("approver", p.approver);
  if (!p.report.empty())
    if (auto report = cbor::decode(p.report)) out.add("shadow_report", plain_json(*report));
  return json::Value(std::move(out));
}

struct Outcome {
  json::Value result;
  cbor::Value receipt;
};

// Governance is refused while deliveries wait: a replay works them off at once, so their records
// and those of governance must not interleave. Apply refuses in its own words.
static Result<Outcome> act(WorldSession& session, const Govern& v) {
  if (v.action != "apply") TRY_OK(session.turn.refuse_while_busy());
  if (v.action == "propose") {
    TRY(json::Value document, json::parse(v.patch));
    TRY(Patch patch, session.governance.compile(document));
    TRY(Proposal p, session.governance.propose(patch, v.description));
    return Outcome{proposal_json(p), proposed_receipt(p, session.turn.world().manifest_hash)};
  }
  if (v.action == "shadow") {
    TRY(Bytes report, session.shadow.run(v.proposal, {v.seeds}));
    TRY(cbor::Value value, cbor::decode(report));
    return Outcome{plain_json(value), shadowed_receipt(v.proposal, value)};
  }
  if (v.action == "approve" || v.action == "reject") {
    TRY(Proposal p, session.governance.decide(v.proposal, v.approver, v.action == "approve"));
    return Outcome{proposal_json(p), decided_receipt(p, v.action == "approve", {})};
  }
  TRY(Proposal p, session.governance.apply(v.proposal, v.strict));
  return Outcome{proposal_json(p), applied_receipt(p)};
}

// A command that fails leaves only its outcome.
Result<Bytes> WorldsProgram::govern(Turn& turn, const Input& input) const {
  TRY(Govern v, decode_govern(input.body));
  const WorldId world_id{input.caller.tenant, v.world};
  const Turn::Mark mark = turn.mark();
  WorldSession session(turn, world_id, runtime_);
  TRY_OK(session.turn.open());
  auto outcome = act(session, v);
  if (!outcome &&
      (outcome.error().code == Code::unavailable || outcome.error().code == Code::corrupt ||
       outcome.error().code == Code::exhausted))
    return fail(std::move(outcome.error()));
  GovernanceCommand command{v.command, v.action, true, {}, {}, {}, turn.now()};
  command.height = session.turn.head.height;
  command.manifest_hash = session.turn.world().manifest_hash;
  if (outcome) {
    TRY_OK(session.turn.close());
    command.result = json::print(outcome->result);
    command.receipt = cbor::encode(outcome->receipt);
  } else {
    turn.rewind(mark);
    command.code = outcome.error().reason;
    command.message = outcome.error().message;
    command.result = outcome.error().detail;
  }
  turn.write(command_key(world_id, v.command), encode(command));
  return encode(command);
}

Result<Bytes> WorldsProgram::fork(Turn& turn, const Input& input) const {
  TRY(ForkWorld v, decode_fork(input.body));
  const WorldId source{input.caller.tenant, v.source};
  TRY(auto parent, turn.read_as<World>(world_key(source), decode_world));
  if (!parent) return fail(Code::not_found, "not_found", "world '" + v.source + "' does not exist");
  World world = *parent;
  world.id = v.world;
  world.parent = v.source;
  world.parent_height = v.until;
  world.detached = true;
  world.retained_from = v.recorded.from;
  WorldSession session(turn, {input.caller.tenant, v.world}, runtime_);
  TRY_OK(session.turn.begin(std::move(world)));
  session.turn.recorded = &v.recorded;
  TRY_OK(session.snapshots.restore(v.snapshot_ref));
  TRY_OK(session.replay.run(v.until));
  session.turn.recorded = nullptr;
  size_t stubbed = 0;
  for (IntentReceipt& receipt : v.stubs) {
    auto settled = session.ingress.accept_receipt(std::move(receipt));
    TRY_OK(session.stepper.drain_fully());
    if (settled)
      ++stubbed;
    else if (!settled.error().is(kUnknownReceipt))
      return fail(std::move(settled.error()));
  }
  const uint64_t height = session.turn.head.height;
  if (v.live) {
    session.turn.edit_world().detached = false;
    TRY_OK(session.intents.offer_all());
  }
  TRY_OK(session.turn.close());
  return json::print(json::object({{"world_id", v.world},
                                   {"parent", v.source},
                                   {"height", height},
                                   {"manifest_hash", session.turn.world().manifest_hash},
                                   {"stub_receipts", uint64_t{stubbed}},
                                   {"effects", v.live ? "live" : "detached"}}));
}

Result<Bytes> WorldsProgram::put_blob(Turn& turn, const Input& input) const {
  Blobs blobs(turn, input.caller.tenant);
  TRY(Bytes digest, blobs.put_anew(input.body));
  return json::print(
      json::object({{"hash", hash_text(digest)}, {"size", uint64_t{input.body.size()}}}));
}

Result<Bytes> WorldsProgram::put_secret(Turn& turn, const Input& input) const {
  TRY(PutSecret v, decode_put_secret(input.body));
  const Key where = secret_key(input.caller.tenant, v.binding);
  TRY(Cell cell, turn.read(where));
  if (v.erase) {
    if (!cell.exists())
      return fail(Code::not_found, "not_found",
                  "secret binding '" + v.binding + "' does not exist");
    turn.erase(where);
    return json::print(json::object({{"binding_id", v.binding}, {"status", "deleted"}}));
  }
  SecretBinding secret{v.binding, v.info, {}};
  if (cell.exists()) {
    TRY(secret, decode_secret(cell.value()));
    if (!v.info.empty()) secret.info = v.info;
  }
  if (!v.value.empty()) secret.versions.push_back({turn.now(), v.value});
  turn.write(where, encode(secret));
  return json::print(json::object({{"binding_id", v.binding},
                                   {"version", uint64_t{secret.versions.size()}},
                                   {"created_at_ns", static_cast<int64_t>(turn.now())}}));
}

// Applies operations to a root, one after the other. Without a root it makes an empty one.
Result<Bytes> WorldsProgram::workspace(Turn& turn, const Input& input) const {
  static constexpr struct {
    std::string_view op, params;
    Result<cbor::Value> (Workspace::*act)(const cbor::Value&) const;
  } kOps[] = {
      {"write_bytes", "sys/WorkspaceWriteBytesParams@1", &Workspace::write_bytes},
      {"write_ref", "sys/WorkspaceWriteRefParams@1", &Workspace::write_ref},
      {"remove", "sys/WorkspaceRemoveParams@1", &Workspace::remove},
      {"set_annotations", "sys/WorkspaceAnnotationsSetParams@1", &Workspace::annotations_set}};
  TRY(json::Value order, json::parse(input.body));
  Blobs blobs(turn, input.caller.tenant);
  const IndexStore store = blobs.index_store();
  const Workspace trees(store);
  const std::string base(order.string_or("root_hash"));
  if (base.empty()) {
    TRY(Bytes root, trees.empty_root());
    return json::print(json::object({{"root_hash", hash_text(root)}}));
  }
  TRY(Bytes digest, parse_hash(base));
  TRY_OK(blobs.get(digest));  // the root must exist
  std::string root = base;
  const json::Value* list = order.find("operations");
  if (!list || !list->is_array())
    return fail(Code::invalid, "invalid_request", "operations is a list");
  for (const json::Value& item : list->array()) {
    const auto* row = std::find_if(std::begin(kOps), std::end(kOps),
                                   [&](const auto& r) { return r.op == item.string_or("op"); });
    if (row == std::end(kOps))
      return fail(Code::invalid, "invalid_request",
                  "an operation is write_bytes, write_ref, remove or set_annotations, not '" +
                      std::string(item.string_or("op")) + "'");
    json::Object given;
    given.add("root_hash", root);
    for (const auto& [name, value] : item.object())
      if (name != "op") given.add(name == "bytes_b64" ? "bytes" : name, value);
    TRY(cbor::Value params, from_json(json::Value(std::move(given)),
                                      *builtins_.schemas().find(row->params), builtins_.schemas()));
    TRY(params, normalize_named(params, row->params, builtins_.schemas()));
    TRY(cbor::Value made, (trees.*row->act)(params));
    root = made.text_or("new_root_hash");
  }
  return json::print(json::object({{"base_root_hash", base}, {"new_root_hash", root}}));
}

Result<Bytes> WorldsProgram::collect(Turn& turn, const Input& input) const {
  Reader r(input.body);
  const Time grace = input.body.empty() ? kBlobGrace : r.sint();
  TRY(GarbageCounts c, collect_garbage(turn, input.caller.tenant, builtins_, grace));
  return json::print(json::object(
      {{"kept", uint64_t{c.kept}}, {"erased", uint64_t{c.erased}}, {"young", uint64_t{c.young}}}));
}

}  // namespace pawl::worlds

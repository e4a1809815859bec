// The inputs of a world: events, receipts, stream frames, governance. JSON is turned into CBOR
// here, before the turn, because that needs only the manifest; the program checks and normalises
// the CBOR.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/service/json_fields.h"
#include "faces/worlds/service/service.h"
#include "faces/worlds/store/world_journal.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

// JSON as CBOR of the schema. Without such a schema it is taken as it is: the program names the
// missing schema.
Result<Bytes> encoded(const GivenValue& value, std::string_view schema, const Schemas& schemas) {
  if (value.cbor) return *value.cbor;
  TypePtr type = schemas.find(schema);
  if (!type) return cbor::encode(to_cbor(*value.json));
  TRY(cbor::Value converted, from_json(*value.json, *type, schemas));
  return cbor::encode(converted);
}

// The program's JSON answer ({"status", "height"}) as a struct.
Result<InputOutcome> outcome_of(Result<Answer> answer) {
  if (!answer) return fail(std::move(answer.error()));
  TRY(json::Value body, json::parse(answer->body));
  const json::Value* height = body.find("height");
  return InputOutcome{std::string(body.string_or("status")),
                      height ? height->as_uint64().value_or(0) : 0, answer->seq};
}

}  // namespace

Result<Bytes> parse_intent(std::string_view text) {
  if (text.empty()) return bad_request("the body lacks 'intent_hash'");
  return parse_hash(text.starts_with("sha256:") ? std::string(text)
                                                : "sha256:" + std::string(text));
}

Bytes frame_payload(const GivenValue& payload) {
  return payload.cbor ? *payload.cbor : cbor::encode(to_cbor(*payload.json));
}

Result<void> check_payload_ref(const StreamFrame& frame) {
  if (frame.payload_ref.empty() || is_hash(frame.payload_ref)) return {};
  return bad_request("'payload_ref' is sha256: and 64 lower-case hex digits");
}

Result<Bytes> Service::event_value(const WorldRef& world, const std::string& schema,
                                   const GivenValue& value) const {
  auto out = encoded(value, schema, world.loaded->schemas);
  if (!out && (out.error().is(kSchemaMismatch) || out.error().is(kSchemaNotFound)))
    return fail(Code::invalid, "manifest.error",
                "manifest loader error: event '" + schema +
                    "' payload failed validation: " + out.error().message);
  return out;
}

void Service::send_event(const Caller& caller, const SendEvent& event, std::string once,
                         Reply done) {
  submit(caller, "event", encode(event), std::move(done), {}, std::move(once));
}

void Service::send_events(const Caller& caller, const SendEvents& events, std::string once,
                          Reply done) {
  submit(caller, "events", encode(events), std::move(done), {}, std::move(once));
}

Result<std::optional<PendingIntent>> Service::find_intent(const WorldRef& world,
                                                          BytesView intent) const {
  TRY(Cell cell, kernel_.read(pending_key(world.world_id, intent)));
  if (!cell.exists()) return std::optional<PendingIntent>();
  TRY(PendingIntent pending, decode_pending(cell.value()));
  return std::optional<PendingIntent>(std::move(pending));
}

Result<Bytes> Service::receipt_payload(const WorldRef& world, const PendingIntent& intent,
                                       const GivenValue& given) const {
  const DeclaredEffect* effect = world.loaded->effect(intent.identity.effect);
  const Schemas& schemas = world.loaded->schemas;
  auto payload = encoded(given, effect ? effect->def.receipt : std::string(), schemas);
  if (!payload && payload.error().is(kSchemaMismatch)) payload = cbor::encode(to_cbor(*given.json));
  // The payload may lie in the peer's envelope, unless the effect's own receipts look like one.
  if (payload && given.json && is_payload_envelope(*given.json) &&
      !(effect && normalize_bytes(*payload, effect->def.receipt, schemas)))
    return open_payload(*given.json,
                        [&](BytesView digest) { return blob(world.world_id.tenant, digest); });
  return payload;
}

void Service::settle(const Caller& caller, const WorldRef& world, IntentReceipt receipt,
                     Done<InputOutcome> done) {
  const Bytes intent = receipt.intent;
  // The effects of a detached world are not open in the kernel.
  const std::string settles =
      world.world->detached ? std::string() : effect_id(world.world_id, hex(intent));
  submit(
      caller, "receipt", encode(SendReceipt{world.world_id.world, std::move(receipt)}),
      [this, world_id = world.world_id, intent,
       done = std::move(done)](Result<Answer> answer) mutable {
        // The intent is not open: settled_before() tells a repeated receipt from an unknown one.
        if (!answer && (answer.error().is(kEffectNotOpen) || answer.error().is(kUnknownReceipt)))
          return done(settled_before(world_id, intent));
        done(outcome_of(std::move(answer)));
      },
      settles);
}

// An intent that this world ever recorded was settled before, so the receipt is a harmless repeat.
// One that it never recorded is receipt.unknown.
Result<InputOutcome> Service::settled_before(const WorldId& world_id, BytesView intent) const {
  bool known = false;
  auto scanned = scan_pointers(kernel_.snapshot(), world_id, "i", intent, [&](uint64_t) {
    known = true;
    return false;
  });
  if (!scanned || !known) return unknown_receipt(intent);
  return InputOutcome{"ignored"};
}

void Service::send_frame(const Caller& caller, const SendFrame& frame, Done<InputOutcome> done) {
  submit(caller, "frame", encode(frame), [done = std::move(done)](Result<Answer> answer) mutable {
    done(outcome_of(std::move(answer)));
  });
}

// Refuses a proposal whose modules lack what its workflows call. The turn finds all other defects,
// and they become the outcome of the command.
Result<void> Service::check_proposal(const WorldId& world_id, std::string_view patch) const {
  auto document = json::parse(patch);
  TRY(auto active, loaded(world_id));
  if (!document || !active) return {};
  auto compiled = read_patch(*document, active->manifest, program_.builtins());
  if (!compiled) return {};
  auto next = load_stored(world_id.tenant, plain_json(to_value(*compiled)));
  if (!next) return {};
  return check_exports(world_id.tenant, *next, {});
}

void Service::govern(const Caller& caller, Govern action, Done<GovernanceCommand> done) {
  if (action.action == "propose")
    if (auto checked = check_proposal({caller.tenant, action.world}, action.patch); !checked)
      return done(fail(std::move(checked.error())));
  std::string once =
      action.named ? "worlds/" + action.world + "/command/" + action.command : std::string();
  submit(
      caller, "govern", encode(action),
      [done = std::move(done)](Result<Answer> answer) mutable {
        if (!answer) return done(fail(std::move(answer.error())));
        done(decode_command(answer->body));
      },
      {}, std::move(once));
}

Result<GovernanceCommand> Service::command(const WorldId& world_id, const std::string& id) const {
  TRY(WorldSnapshot s, open_snapshot(world_id));
  TRY(Cell cell, s.snapshot.read(command_key(world_id, id)));
  if (!cell.exists())
    return fail(Code::not_found, "not_found",
                "world '" + s.world.id + "' knows no command '" + id + "'");
  return decode_command(cell.value());
}

Result<std::vector<Proposal>> Service::proposals(const WorldId& world_id) const {
  // One answer; the oldest proposals come first.
  constexpr size_t kMaxListedProposals = 1000;
  TRY(WorldSnapshot s, open_snapshot(world_id));
  std::vector<Proposal> out;
  TRY_OK(s.snapshot.scan(proposals_prefix(world_id), [&](BytesView, const Cell& cell) {
    if (auto p = decode_proposal(cell.value())) out.push_back(std::move(*p));
    return out.size() < kMaxListedProposals;
  }));
  return out;
}

// Seed events of a shadow run are read by the schemas of the proposal's manifest. Whether the
// proposal exists is for the program to say.
Result<WorldRef> Service::under_proposal(WorldRef world, uint64_t proposal) const {
  TRY(Cell cell, kernel_.read(proposal_key(world.world_id, proposal)));
  if (!cell.exists()) return world;
  TRY(Proposal p, decode_proposal(cell.value()));
  TRY(Bytes digest, parse_hash(p.patch_hash));
  auto stored = blob(world.world_id.tenant, digest);
  if (!stored && stored.error().code == Code::not_found) return world;
  if (!stored) return fail(std::move(stored.error()));
  TRY(cbor::Value patch, cbor::decode(*stored));
  TRY(LoadedManifest next, load_stored(world.world_id.tenant, plain_json(patch)));
  world.loaded = std::make_shared<const LoadedManifest>(std::move(next));
  return world;
}

}  // namespace pawl::worlds

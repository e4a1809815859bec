// What goes into a world: events, receipts, frames, governance.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> bad(std::string why) { return fail(Code::invalid, "invalid_request", std::move(why)); }

Result<std::optional<Bytes>> bytes_field(const json::Value& body, std::string_view name) {
  const json::Value* v = body.find(name);
  if (!v || v->is_null()) return std::optional<Bytes>();
  if (!v->is_string()) return bad("'" + std::string(name) + "' is base64 text");
  TRY(Bytes bytes, unbase64(v->string()));
  return std::optional<Bytes>(std::move(bytes));
}

// A value in JSON led by its schema (`value` or `value_json`), or CBOR in base64 (`value_b64`).
Result<Bytes> value_of(const json::Value& body, std::string_view name, std::string_view schema, const Schemas& schemas) {
  for (std::string_view word : {"_b64", "_cbor_b64", "_cbor"}) {
    TRY(std::optional<Bytes> cbor, bytes_field(body, std::string(name) + std::string(word)));
    if (cbor) return std::move(*cbor);
  }
  const json::Value* value = body.find(std::string(name) + "_json");
  if (!value) value = body.find(name);
  if (!value) return bad("the body lacks '" + std::string(name) + "', '" + std::string(name) + "_json' or '" + std::string(name) + "_b64'");
  TypePtr type = schemas.find(schema);
  if (!type) return cbor::encode(to_cbor(*value));  // the engine names the missing schema
  TRY(cbor::Value converted, from_json(*value, *type, schemas));
  return cbor::encode(converted);
}

// The intent as "sha256:hex" or as the bare hex.
Result<Bytes> intent_of(const json::Value& body) {
  const std::string text(body.string_or("intent_hash", body.string_or("intent_id")));
  if (text.empty()) return bad("the body lacks 'intent_hash'");
  return parse_hash(text.starts_with("sha256:") ? text : "sha256:" + text);
}

}  // namespace

Result<SendEvent> Service::parse_event(const Doorstep& s, const json::Value& body) const {
  SendEvent out;
  out.world = s.place.world;
  out.event.schema = std::string(body.string_or("schema"));
  if (out.event.schema.empty()) return bad("an event is {\"schema\": name, \"value\": ...}");
  auto value = value_of(body, "value", out.event.schema, s.loaded->schemas);
  if (!value && (value.error().reason == "SCHEMA_MISMATCH" || value.error().reason == "SCHEMA_NOT_FOUND"))
    return fail(Code::invalid, "manifest.error", "manifest loader error: event '" + out.event.schema + "' payload failed validation: " + value.error().message);
  if (!value) return fail(std::move(value.error()));
  out.event.value = std::move(*value);
  TRY(out.event.key, bytes_field(body, "key_b64"));
  TRY(std::optional<uint64_t> epoch, number_field(body, "expected_world_epoch"));
  out.expected_epoch = epoch.value_or(0);
  return out;
}

Result<SendEvents> Service::parse_events(const Doorstep& s, const json::Array& list) const {
  SendEvents out{s.place.world, {}};
  for (const json::Value& item : list) {
    TRY(SendEvent one, parse_event(s, item));
    out.events.push_back(std::move(one.event));
  }
  return out;
}

void Service::send_event(Request request, Respond respond) {
  auto s = doorstep(request);
  auto body = s ? body_of(request) : Result<json::Value>(fail(s.error()));
  const json::Value* batch = body ? body->find("events") : nullptr;
  if (batch && batch->is_array()) {
    auto all = parse_events(*s, batch->array());
    if (!all) return respond(refuse(all.error()));
    return submit(request, "events", encode(*all), [this, respond = std::move(respond)](Result<Answer> answer) mutable { answer_json(std::move(respond), 202, std::move(answer)); }, {},
                  std::string(request.header("Idempotency-Key")));
  }
  auto event = body ? parse_event(*s, *body) : Result<SendEvent>(fail(body.error()));
  if (!event) return respond(refuse(event.error()));
  auto submitted = text_field(*body, "submission_id"), correlated = text_field(*body, "correlation_id");
  if (!submitted || !correlated) return respond(refuse(submitted ? correlated.error() : submitted.error()));
  const std::string submission = std::move(*submitted), correlation = std::move(*correlated);
  const std::string once = submission.empty() ? std::string(request.header("Idempotency-Key")) : "worlds/" + event->world + "/" + submission;
  submit(request, "event", encode(*event), [submission, correlation, respond = std::move(respond)](Result<Answer> answer) mutable {
    if (!answer && !submission.empty() && answer.error().reason == "IDEMPOTENCY_KEY_REUSED")
      return respond(refuse({Code::conflict, "conflict", "submission '" + submission + "' was another event: use a new submission_id"}));
    if (!answer) return respond(refuse(answer.error()));
    // What the program answers, with the caller's own words.
    std::string out = std::move(answer->body);
    out.pop_back();
    out += ",\"status\":\"accepted\"";
    if (!submission.empty()) out += ",\"submission_id\":" + json::quote(submission);
    if (!correlation.empty()) out += ",\"correlation_id\":" + json::quote(correlation);
    respond(wire::json_response(202, out + "}"));
  }, {}, once);
}

bool Service::once_known(const Place& place, BytesView intent) const {
  bool known = false;
  auto scanned = scan_pointers(door_.look(), place, "i", intent, [&](uint64_t) {
    known = true;
    return false;
  });
  return scanned && known;
}

void Service::send_receipt(Request request, Respond respond) {
  auto s = doorstep(request);
  auto body = s ? body_of(request) : Result<json::Value>(fail(s.error()));
  auto intent = body ? intent_of(*body) : Result<Bytes>(fail(body.error()));
  if (!intent) return respond(refuse(intent.error()));
  auto unknown = [this, place = s->place, digest = *intent](Respond to) {
    if (once_known(place, digest)) return to(wire::json_response(200, "{\"status\":\"ignored\",\"reason\":\"the intent was settled before\"}"));
    to(refuse({Code::not_found, "receipt.unknown", "unknown effect receipt for " + hash_text(digest)}));
  };
  auto cell = door_.read(pending_key(s->place, *intent));
  if (!cell) return respond(refuse(cell.error()));
  if (!cell->exists()) return unknown(std::move(respond));
  auto pending = decode_pending(cell->value());
  if (!pending) return respond(refuse(pending.error()));
  const DeclaredEffect* effect = s->loaded->effect(pending->identity.effect);
  auto status = text_field(*body, "status", "ok");
  auto cost = number_field(*body, "cost_cents");
  if (!status || !cost) return respond(refuse(status ? cost.error() : status.error()));
  auto payload = value_of(*body, "payload", effect ? effect->def.receipt : std::string(), s->loaded->schemas);
  // Only what went well must have an answer.
  if (!payload && *status != "ok" && std::none_of(body->object().begin(), body->object().end(), [](const json::Member& m) { return m.name.starts_with("payload"); }))
    payload = cbor::encode(cbor::Value());
  // A payload that does not fit is a fault of the receipt, not of the request: it goes in as it is.
  if (!payload && payload.error().reason == "SCHEMA_MISMATCH") {
    const json::Value* raw = body->find("payload") ? body->find("payload") : body->find("payload_json");
    payload = cbor::encode(to_cbor(*raw));
  }
  if (!payload) return respond(refuse(payload.error()));
  auto signature = bytes_field(*body, body->find("signature") ? "signature" : "signature_b64");
  if (!signature) return respond(refuse(signature.error()));
  SendReceipt out{s->place.world, {*intent, std::move(*status), std::move(*payload), *cost, signature->value_or(Bytes(64, '\0'))}};
  const std::string settles = s->world->detached ? std::string() : effect_id(s->place, hex(*intent));
  submit(request, "receipt", encode(out), [this, unknown, respond = std::move(respond)](Result<Answer> answer) mutable {
    if (!answer && (answer.error().reason == "EFFECT_NOT_OPEN" || answer.error().reason == "receipt.unknown")) return unknown(std::move(respond));
    answer_json(std::move(respond), 202, std::move(answer));
  }, settles);
}

void Service::send_frame(Request request, Respond respond) {
  auto s = doorstep(request);
  auto body = s ? body_of(request) : Result<json::Value>(fail(s.error()));
  auto intent = body ? intent_of(*body) : Result<Bytes>(fail(body.error()));
  auto payload = intent ? value_of(*body, "payload", {}, s->loaded->schemas) : Result<Bytes>(fail(intent.error()));
  auto key = payload ? bytes_field(*body, "origin_instance_key_b64") : Result<std::optional<Bytes>>(fail(payload.error()));
  auto signature = key ? bytes_field(*body, "signature_b64") : Result<std::optional<Bytes>>(fail(key.error()));
  auto seq = signature ? number_field(*body, "seq") : Result<std::optional<uint64_t>>(fail(signature.error()));
  auto emitted = seq ? number_field(*body, "emitted_at_seq") : Result<std::optional<uint64_t>>(fail(seq.error()));
  if (emitted && !*seq) emitted = bad("the body lacks 'seq': frames count from 1");
  if (!emitted) return respond(refuse(emitted.error()));
  SendFrame out;
  out.world = s->place.world;
  StreamFrame& f = out.frame;
  auto text = [&](std::string_view name) { return std::string(body->string_or(name)); };
  f.intent = *intent;
  f.origin_module_id = text("origin_module_id");
  f.origin_workflow_hash = text("origin_workflow_hash");
  f.origin_instance_key = *key;
  f.identity = {text("effect"), text("effect_hash"), text("executor_module"), text("executor_module_hash"), text("executor_entrypoint")};
  f.emitted_at_seq = emitted->value_or(0);
  f.seq = **seq;
  f.kind = text("kind");
  f.payload = std::move(*payload);
  f.payload_ref = text("payload_ref");
  if (!f.payload_ref.empty() && !is_hash(f.payload_ref)) return respond(refuse({Code::invalid, "invalid_request", "'payload_ref' is sha256: and 64 lower-case hex digits"}));
  f.signature = signature->value_or(Bytes(64, '\0'));
  submit(request, "frame", encode(out), [this, respond = std::move(respond)](Result<Answer> answer) mutable { answer_json(std::move(respond), 202, std::move(answer)); });
}

static json::Value command_json(const std::string& world, const Command& c) {
  json::Object out;
  out.add("command_id", c.id);
  out.add("command", c.kind);
  out.add("status", !c.done ? "running" : c.code.empty() ? "succeeded" : "failed");
  out.add("poll_url", "/v1/worlds/" + world + "/commands/" + c.id);
  auto result = c.result.empty() ? Result<json::Value>(json::Value()) : json::parse(c.result);
  if (c.code.empty()) {
    out.add("result", result ? *result : json::Value());
  } else {
    json::Object error;
    error.add("code", c.code);
    error.add("message", c.message);
    if (result && result->is_object()) error.add("detail", *result);
    out.add("error", json::Value(std::move(error)));
  }
  return json::Value(std::move(out));
}

// The same world under the manifest that a proposal brings: seed events are of its schemas.
Result<Service::Doorstep> Service::proposed(Doorstep at, uint64_t proposal) const {
  TRY(Cell cell, door_.read(proposal_key(at.place, proposal)));
  if (!cell.exists()) return at;  // the program says so
  TRY(Proposal p, decode_proposal(cell.value()));
  TRY(Bytes digest, parse_hash(p.patch_hash));
  TRY(Cell stored, door_.read(blob_key(at.place.tenant, digest)));
  if (!stored.exists()) return at;
  TRY(Blob blob, decode_blob(digest, stored.value()));
  TRY(cbor::Value patch, cbor::decode(blob.bytes));
  TRY(Loaded next, load_stored(at.place.tenant, plain_json(patch)));
  at.loaded = std::make_shared<const Loaded>(std::move(next));
  return at;
}

Result<Govern> Service::parse_govern(const Doorstep& s, const Request& request, const json::Value& body) {
  Govern out;
  out.world = s.place.world;
  out.action = request.params.at(1);
  static constexpr std::string_view kActions[] = {"propose", "shadow", "approve", "reject", "apply"};
  if (std::find(std::begin(kActions), std::end(kActions), out.action) == std::end(kActions))
    return fail(Code::not_found, "not_found", "governance has propose, shadow, approve, reject and apply, not '" + out.action + "'");
  TRY(out.command, text_field(body, "command_id"));
  if (out.command.empty()) out.command = fresh_id("command");
  TRY(std::optional<uint64_t> proposal, number_field(body, "proposal_id"));
  if (!proposal && out.action != "propose") return bad(out.action + " wants {\"proposal_id\": number}");
  out.proposal = proposal.value_or(0);
  TRY(out.approver, text_field(body, "approver", request.caller.user));
  json::Object query;
  if (auto mode = request.query_param("mode")) query.add("mode", *mode);
  TRY(std::string mode, choice_field(query.find("mode") ? json::Value(query) : body, "mode", {"strict", "relaxed"}));
  out.strict = mode == "strict";
  TRY(std::string decision, choice_field(body, "decision", {"approve", "reject"}));
  if (out.action == "approve") out.action = decision;
  if (const json::Value* d = body.find("description"); d && !d->is_null()) {
    TRY(out.description, text_field(body, "description"));
  }
  if (const json::Value* patch = body.find("patch")) out.patch = json::print(*patch);
  if (out.action == "propose" && out.patch.empty()) return bad("propose wants {\"patch\": a patch document, or {manifest, nodes}}");
  const json::Value* seeds = body.find("seed_events");
  if (!seeds || seeds->is_null() || out.action != "shadow") return out;
  if (!seeds->is_array()) return bad("'seed_events' is a list of events");
  TRY(Doorstep next, proposed(s, out.proposal));
  TRY(SendEvents all, parse_events(next, seeds->array()));
  out.seeds = std::move(all.events);
  return out;
}

void Service::govern(Request request, Respond respond) {
  auto s = doorstep(request);
  auto body = s ? body_of(request) : Result<json::Value>(fail(s.error()));
  auto out = body ? parse_govern(*s, request, *body) : Result<Govern>(fail(body.error()));
  if (!out) return respond(refuse(out.error()));
  submit(request, "govern", encode(*out), [world = out->world, respond = std::move(respond)](Result<Answer> answer) mutable {
    auto command = answer ? decode_command(answer->body) : Result<Command>(fail(answer.error()));
    if (!command) return respond(refuse(command.error()));
    respond(wire::json_response(202, json::print(command_json(world, *command))));
  });
}

Result<json::Value> Service::get_command(const Request& request) {
  TRY(Sight s, sight(request));
  TRY(Cell cell, s.look.read(command_key(s.place, request.params.at(1))));
  if (!cell.exists()) return fail(Code::not_found, "not_found", "world '" + s.world.id + "' knows no command '" + request.params.at(1) + "'");
  TRY(Command command, decode_command(cell.value()));
  return command_json(s.world.id, command);
}

Result<json::Value> Service::list_proposals(const Request& request) {
  TRY(Sight s, sight(request));
  json::Array list;
  TRY_OK(s.look.scan(proposals_prefix(s.place), [&](BytesView, const Cell& cell) {
    if (auto p = decode_proposal(cell.value())) list.push_back(proposal_json(*p));
    return list.size() < 1000;
  }));
  return json::object({{"proposals", json::Value(std::move(list))}});
}

}  // namespace pawl::worlds

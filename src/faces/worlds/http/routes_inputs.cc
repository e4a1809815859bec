// What goes into a world: events, receipts, frames.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/peer_forms.h"
#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "invalid_request", std::move(why));
}

// A value in JSON led by its schema (`value` or `value_json`), or CBOR in base64 (`value_b64`).
Result<Bytes> value_of(const json::Value& body, std::string_view name, std::string_view schema,
                       const Schemas& schemas) {
  for (std::string_view word : {"_b64", "_cbor_b64", "_cbor"}) {
    TRY(std::optional<Bytes> cbor, bytes_field(body, std::string(name) + std::string(word)));
    if (cbor) return std::move(*cbor);
  }
  const json::Value* value = body.find(std::string(name) + "_json");
  if (const json::Value* plain = body.find(name); plain && (!value || value->is_null()))
    value = plain;
  if (!value)
    return bad("the body lacks '" + std::string(name) + "', '" + std::string(name) + "_json' or '" +
               std::string(name) + "_b64'");
  TypePtr type = schemas.find(schema);
  if (!type) return cbor::encode(to_cbor(*value));  // the engine names the missing schema
  TRY(cbor::Value converted, from_json(*value, *type, schemas));
  return cbor::encode(converted);
}

// The intent as "sha256:hex", as the bare hex, or as a list of its bytes.
Result<Bytes> intent_of(const json::Value& body) {
  if (const json::Value* listed = body.find("intent_hash"); listed && listed->is_array()) {
    TRY(std::optional<Bytes> digest, bytes_field(body, "intent_hash"));
    if (digest->size() != 32) return bad("'intent_hash' has 32 bytes");
    return *std::move(digest);
  }
  const std::string text(body.string_or("intent_hash", body.string_or("intent_id")));
  if (text.empty()) return bad("the body lacks 'intent_hash'");
  return parse_hash(text.starts_with("sha256:") ? text : "sha256:" + text);
}

// Of something accepted by this world.
std::string accepted_members(const World& world, const std::string& correlation) {
  std::string out = ",\"world_epoch\":" + std::to_string(world.epoch);
  if (!correlation.empty()) out += ",\"correlation_id\":" + json::quote(correlation);
  return out;
}

}  // namespace

Result<SendEvent> Service::parse_event(const WorldRef& s, const json::Value& body) const {
  SendEvent out;
  out.world = s.world_id.world;
  out.event.schema = std::string(body.string_or("schema"));
  if (out.event.schema.empty()) return bad("an event is {\"schema\": name, \"value\": ...}");
  auto value = value_of(body, "value", out.event.schema, s.loaded->schemas);
  if (!value &&
      (value.error().reason == "SCHEMA_MISMATCH" || value.error().reason == "SCHEMA_NOT_FOUND"))
    return fail(Code::invalid, "manifest.error",
                "manifest loader error: event '" + out.event.schema +
                    "' payload failed validation: " + value.error().message);
  if (!value) return fail(std::move(value.error()));
  out.event.value = std::move(*value);
  TRY(out.event.key, bytes_field(body, "key_b64"));
  TRY(std::optional<uint64_t> epoch, number_field(body, "expected_world_epoch"));
  out.expected_epoch = epoch.value_or(0);
  return out;
}

Result<SendEvents> Service::parse_events(const WorldRef& s, const json::Array& list) const {
  SendEvents out{s.world_id.world, {}};
  for (const json::Value& item : list) {
    TRY(SendEvent one, parse_event(s, item));
    out.events.push_back(std::move(one.event));
  }
  return out;
}

void Service::send_event(Request request, Respond respond) {
  auto s = world_ref(request);
  auto body = s ? body_of(request) : Result<json::Value>(fail(s.error()));
  const json::Value* batch = body ? body->find("events") : nullptr;
  if (batch && batch->is_array()) {
    auto all = parse_events(*s, batch->array());
    if (!all) return respond(refuse(all.error()));
    return submit(
        request, "events", encode(*all),
        [this, respond = std::move(respond)](Result<Answer> answer) mutable {
          answer_json(std::move(respond), 202, std::move(answer));
        },
        {}, std::string(request.header("Idempotency-Key")));
  }
  auto event = body ? parse_event(*s, *body) : Result<SendEvent>(fail(body.error()));
  if (!event) return respond(refuse(event.error()));
  auto submitted = text_field(*body, "submission_id"),
       correlation = text_field(*body, "correlation_id");
  if (!submitted || !correlation)
    return respond(refuse(submitted ? correlation.error() : submitted.error()));
  const std::string submission = std::move(*submitted);
  const std::string once = submission.empty() ? std::string(request.header("Idempotency-Key"))
                                              : "worlds/" + event->world + "/" + submission;
  submit(
      request, "event", encode(*event),
      [this, submission,
       more = ",\"status\":\"accepted\"" + accepted_members(*s->world, *correlation),
       respond = std::move(respond)](Result<Answer> answer) mutable {
        if (!answer && !submission.empty() && answer.error().reason == "IDEMPOTENCY_KEY_REUSED")
          return respond(refuse(
              {Code::conflict, "conflict",
               "submission '" + submission + "' was another event: use a new submission_id"}));
        answer_accepted(std::move(respond), 202, std::move(answer), submission, more);
      },
      {}, once);
}

bool Service::once_known(const WorldId& world_id, BytesView intent) const {
  bool known = false;
  auto scanned = scan_pointers(kernel_.snapshot(), world_id, "i", intent, [&](uint64_t) {
    known = true;
    return false;
  });
  return scanned && known;
}

void Service::send_receipt(Request request, Respond respond) {
  auto s = world_ref(request);
  auto body = s ? body_of(request) : Result<json::Value>(fail(s.error()));
  auto intent = body ? intent_of(*body) : Result<Bytes>(fail(body.error()));
  if (!intent) return respond(refuse(intent.error()));
  auto unknown = [this, world_id = s->world_id, digest = *intent](Respond to) {
    if (once_known(world_id, digest))
      return to(wire::json_response(
          200, "{\"status\":\"ignored\",\"reason\":\"the intent was settled before\"}"));
    to(refuse(
        {Code::not_found, "receipt.unknown", "unknown effect receipt for " + hash_text(digest)}));
  };
  auto cell = kernel_.read(pending_key(s->world_id, *intent));
  if (!cell) return respond(refuse(cell.error()));
  if (!cell->exists()) return unknown(std::move(respond));
  auto pending = decode_pending(cell->value());
  if (!pending) return respond(refuse(pending.error()));
  const DeclaredEffect* effect = s->loaded->effect(pending->identity.effect);
  auto status = text_field(*body, "status", "ok");
  auto cost = number_field(*body, "cost_cents");
  auto correlation = text_field(*body, "correlation_id");
  if (!status || !cost || !correlation)
    return respond(refuse(!status ? status.error() : !cost ? cost.error() : correlation.error()));
  auto payload =
      value_of(*body, "payload", effect ? effect->def.receipt : std::string(), s->loaded->schemas);
  // Only what went well must have an answer.
  if (!payload && *status != "ok" &&
      std::none_of(body->object().begin(), body->object().end(),
                   [](const json::Member& m) { return m.name.starts_with("payload"); }))
    payload = cbor::encode(cbor::Value());
  // A payload that does not fit is a fault of the receipt, not of the request: it goes in as it is.
  if (!payload && payload.error().reason == "SCHEMA_MISMATCH") {
    const json::Value* raw =
        body->find("payload") ? body->find("payload") : body->find("payload_json");
    payload = cbor::encode(to_cbor(*raw));
  }
  // The peer's envelope around it, unless the effect's own answers look like one.
  if (const json::Value* raw = body->find("payload");
      payload && raw && is_payload_envelope(*raw) &&
      !(effect && normalize_bytes(*payload, effect->def.receipt, s->loaded->schemas)))
    payload = open_payload(
        *raw, [&](BytesView digest) { return stored_blob(s->world_id.tenant, digest); });
  if (!payload) return respond(refuse(payload.error()));
  auto signature = bytes_field(*body, body->find("signature") ? "signature" : "signature_b64");
  if (!signature) return respond(refuse(signature.error()));
  SendReceipt out{s->world_id.world,
                  {*intent, std::move(*status), std::move(*payload), *cost,
                   signature->value_or(Bytes(64, '\0'))}};
  const std::string settles =
      s->world->detached ? std::string() : effect_id(s->world_id, hex(*intent));
  submit(
      request, "receipt", encode(out),
      [this, unknown, more = accepted_members(*s->world, *correlation),
       respond = std::move(respond)](Result<Answer> answer) mutable {
        if (!answer && (answer.error().reason == "EFFECT_NOT_OPEN" ||
                        answer.error().reason == "receipt.unknown"))
          return unknown(std::move(respond));
        answer_accepted(std::move(respond), 202, std::move(answer), {}, more);
      },
      settles);
}

void Service::send_frame(Request request, Respond respond) {
  auto s = world_ref(request);
  auto body = s ? body_of(request) : Result<json::Value>(fail(s.error()));
  auto intent = body ? intent_of(*body) : Result<Bytes>(fail(body.error()));
  auto payload = intent ? value_of(*body, "payload", {}, s->loaded->schemas)
                        : Result<Bytes>(fail(intent.error()));
  auto key = payload ? bytes_field(*body, "origin_instance_key_b64")
                     : Result<std::optional<Bytes>>(fail(payload.error()));
  auto signature =
      key ? bytes_field(*body, "signature_b64") : Result<std::optional<Bytes>>(fail(key.error()));
  auto seq = signature ? number_field(*body, "seq")
                       : Result<std::optional<uint64_t>>(fail(signature.error()));
  auto emitted = seq ? number_field(*body, "emitted_at_seq")
                     : Result<std::optional<uint64_t>>(fail(seq.error()));
  if (emitted && !*seq) emitted = bad("the body lacks 'seq': frames count from 1");
  if (!emitted) return respond(refuse(emitted.error()));
  SendFrame out;
  out.world = s->world_id.world;
  StreamFrame& f = out.frame;
  std::optional<Error> wrong;
  auto text = [&](std::string_view name) {
    auto found = text_field(*body, name);
    if (!found) wrong = found.error();
    return found ? std::move(*found) : std::string();
  };
  f.intent = *intent;
  f.origin_module_id = text("origin_module_id");
  f.origin_workflow_hash = text("origin_workflow_hash");
  f.origin_instance_key = *key;
  f.identity = {text("effect"), text("effect_hash"), text("executor_module"),
                text("executor_module_hash"), text("executor_entrypoint")};
  f.emitted_at_seq = emitted->value_or(0);
  f.seq = **seq;
  f.kind = text("kind");
  f.payload = std::move(*payload);
  f.payload_ref = text("payload_ref");
  if (wrong) return respond(refuse(*wrong));
  if (!f.payload_ref.empty() && !is_hash(f.payload_ref))
    return respond(refuse({Code::invalid, "invalid_request",
                           "'payload_ref' is sha256: and 64 lower-case hex digits"}));
  f.signature = signature->value_or(Bytes(64, '\0'));
  submit(request, "frame", encode(out),
         [this, respond = std::move(respond)](Result<Answer> answer) mutable {
           answer_json(std::move(respond), 202, std::move(answer));
         });
}

}  // namespace pawl::worlds

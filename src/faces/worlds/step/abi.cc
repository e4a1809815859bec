#include "faces/worlds/step/abi.h"

#include "base/dice.h"
#include "cbor/in.h"

namespace pawl::worlds {
namespace {

using cbor::Map;
using cbor::octets;
using cbor::Value;

std::unexpected<Error> invalid(std::string why) {
  return fail(Code::unprocessable, "workflow.output_invalid",
              "invalid workflow output: " + std::move(why));
}

void put_event(cbor::Out& out, const Event& event) {
  out.map(event.key ? 3 : 2).text("schema").text(event.schema).text("value").bytes(event.value);
  if (event.key) out.text("key").bytes(*event.key);
}

Result<Bytes> bytes_of(const Value& map, std::string_view field, std::string_view older = {}) {
  const Value* v = map.find(field);
  if (!v && !older.empty()) v = map.find(older);
  if (!v || !v->is_bytes()) return invalid("field '" + std::string(field) + "' must be bytes");
  return v->bytes();
}

Result<std::optional<Bytes>> optional_bytes(const Value& map, std::string_view field) {
  const Value* v = map.find(field);
  if (!v || v->is_null()) return std::optional<Bytes>();
  if (!v->is_bytes()) return invalid("field '" + std::string(field) + "' must be bytes or null");
  return std::optional<Bytes>(v->bytes());
}

Result<std::string> text_of(const Value& map, std::string_view field, std::string_view older = {}) {
  const Value* v = map.find(field);
  if (!v && !older.empty()) v = map.find(older);
  if (!v || !v->is_text()) return invalid("field '" + std::string(field) + "' must be text");
  return v->text();
}

Result<const cbor::Array*> list_of(const Value& map, std::string_view field) {
  static const cbor::Array none;
  const Value* v = map.find(field);
  if (!v || v->is_null()) return &none;
  if (!v->is_array()) return invalid("field '" + std::string(field) + "' must be a list");
  return &v->array();
}

Result<Event> event_of(const Value& v) {
  Event event;
  TRY(event.schema, text_of(v, "schema"));
  TRY(event.value, bytes_of(v, "value"));
  TRY(event.key, optional_bytes(v, "key"));
  return event;
}

Result<EmittedEffect> effect_of(const Value& v) {
  EmittedEffect out;
  TRY(out.effect, text_of(v, "effect", "kind"));
  TRY(out.params, bytes_of(v, "params", "params_cbor"));
  if (const Value* issuer = v.find("issuer_ref"); issuer && !issuer->is_null()) {
    TRY(out.issuer_ref, text_of(v, "issuer_ref"));
  }
  TRY(out.idempotency_key, optional_bytes(v, "idempotency_key"));
  return out;
}

// Fast path for the common output: a state and nothing else. False when there is more.
bool read_plain(BytesView bytes, StepOutput& out) {
  cbor::In in(bytes);
  bool state = false;
  for (uint64_t n = in.count(5), i = 0; in.ok() && i < n; ++i) {
    const BytesView name = in.run(3);
    if (name == "state") {
      state = true;
      out.state.reset();
      if (!in.take_null()) out.state = Bytes(in.run(2));
    } else if (name == "domain_events" || name == "effects") {
      if (in.head() != cbor::In::Head{4, 0}) return false;
    } else if (name != "ann" || !in.take_null()) {
      return false;
    }
  }
  return state && in.done();
}

// An input as encode_input() writes it.
bool read_plain(BytesView bytes, StepInput& out) {
  cbor::In in(bytes);
  const uint64_t fields = in.count(5);
  if (!in.take(BytesView("\x67version\x01\x65state", 15))) return false;
  if (!in.take_null()) out.state = Bytes(in.run(2));
  if (!in.take(BytesView("\x65"
                         "event",
                         6)))
    return false;
  const uint64_t parts = in.count(5);
  if (!in.take(BytesView("\x66schema", 7))) return false;
  out.event.schema = in.run(3);
  if (!in.take(BytesView("\x65value", 6))) return false;
  out.event.value = in.run(2);
  if (parts == 3 && in.take(BytesView("\x63key", 4))) out.event.key = Bytes(in.run(2));
  if (fields == 4 && in.take(BytesView("\x63"
                                       "ctx",
                                       4)))
    out.context = Bytes(in.run(2));
  return in.done();
}

}  // namespace

Digest event_digest(const Event& event) {
  // In canonical order: key, value, schema, by the length of the names.
  Bytes out(cbor::kSelfDescribed);
  cbor::Out o(out);
  o.map(event.key ? 3 : 2);
  if (event.key) o.text("key").bytes(*event.key);
  o.text("value").bytes(event.value).text("schema").text(event.schema);
  return sha256(out);
}

std::string event_hash(const Event& event) { return hash_text(event_digest(event)); }

Bytes encode_context(const Context& c) {
  Bytes out(cbor::kSelfDescribed);
  cbor::Out o(out);
  o.map(8 + (c.key ? 1 : 0) + (c.workflow_hash.empty() ? 0 : 1));
  if (c.key) o.text("key").bytes(*c.key);
  o.text("now_ns").uint(c.moment.now_ns).text("entropy").bytes(entropy_of(c.moment));
  o.text("workflow").text(c.workflow).text("cell_mode").boolean(c.key.has_value());
  o.text("event_hash").text(c.event_hash).text("manifest_hash").text(c.moment.manifest_hash);
  if (!c.workflow_hash.empty()) o.text("workflow_hash").text(c.workflow_hash);
  o.text("journal_height")
      .uint(c.moment.height)
      .text("logical_now_ns")
      .uint(c.moment.logical_now_ns);
  return out;
}

Bytes entropy_of(const Moment& moment) {
  if (moment.chance.size() != 16) return moment.chance;
  Dice dice({read_ordered64(moment.chance), read_ordered64(BytesView(moment.chance).substr(8))});
  Bytes out;
  out.reserve(64);
  while (out.size() < 64)
    out.append(ordered64(dice.next()));
  return out;
}

Bytes encode_input(const std::optional<Bytes>& state, const Event& event,
                   const std::optional<Bytes>& context) {
  Bytes out;
  out.reserve(96 + event.schema.size() + event.value.size() + (state ? state->size() : 0) +
              (context ? context->size() : 0));
  cbor::Out o(out);
  o.map(context ? 4 : 3).text("version").uint(1).text("state");
  if (state)
    o.bytes(*state);
  else
    o.null();
  o.text("event");
  put_event(o, event);
  if (context) o.text("ctx").bytes(*context);
  return out;
}

Result<StepInput> decode_input(BytesView bytes) {
  if (StepInput plain; read_plain(bytes, plain)) return plain;
  TRY(Value v, cbor::decode(bytes));
  const Value* version = v.find("version");
  const auto number = version ? version->as_uint64() : std::nullopt;
  if (number != uint64_t{1})
    return fail(Code::unprocessable, "workflow.input_invalid",
                "ABI version " + (number ? std::to_string(*number) : std::string("?")) +
                    " is not supported (expected 1)");
  StepInput out;
  TRY(out.state, optional_bytes(v, "state"));
  TRY(out.context, optional_bytes(v, "ctx"));
  const Value* event = v.find("event");
  if (!event) return invalid("field 'event' must be there");
  TRY(out.event, event_of(*event));
  return out;
}

Result<StepOutput> decode_output(BytesView bytes) {
  if (StepOutput plain; read_plain(bytes, plain)) return plain;
  auto decoded = cbor::decode(bytes);
  if (!decoded) return invalid(decoded.error().message);
  if (!decoded->is_map()) return invalid("the output envelope must be a map");
  if (!decoded->find("state")) return invalid("missing field `state`");
  StepOutput out;
  TRY(out.state, optional_bytes(*decoded, "state"));
  TRY(const cbor::Array* events, list_of(*decoded, "domain_events"));
  for (const Value& v : *events) {
    TRY(Event event, event_of(v));
    out.events.push_back(std::move(event));
  }
  TRY(const cbor::Array* effects, list_of(*decoded, "effects"));
  for (const Value& v : *effects) {
    TRY(EmittedEffect effect, effect_of(v));
    out.effects.push_back(std::move(effect));
  }
  TRY(out.annotations, optional_bytes(*decoded, decoded->find("ann") ? "ann" : "annotations"));
  if (const Value* status = decoded->find("status"); status && !status->is_null()) {
    if (!status->is_text() || (status->text() != "completed" && status->text() != "running"))
      return invalid("field 'status' is completed or running");
    out.completed = status->text() == "completed";
  }
  return out;
}

Bytes encode_output(const StepOutput& output) {
  Bytes out;
  cbor::Out o(out);
  o.map(output.completed ? 5 : 4).text("state");
  if (output.state)
    o.bytes(*output.state);
  else
    o.null();
  o.text("domain_events").array(output.events.size());
  for (const Event& event : output.events)
    put_event(o, event);
  o.text("effects").array(output.effects.size());
  for (const EmittedEffect& e : output.effects) {
    o.map(2 + (e.issuer_ref ? 1 : 0) + (e.idempotency_key ? 1 : 0))
        .text("kind")
        .text(e.effect)
        .text("params_cbor")
        .bytes(e.params);
    if (e.issuer_ref) o.text("issuer_ref").text(*e.issuer_ref);
    if (e.idempotency_key) o.text("idempotency_key").bytes(*e.idempotency_key);
  }
  o.text("ann");
  if (output.annotations)
    o.bytes(*output.annotations);
  else
    o.null();
  if (output.completed) o.text("status").text("completed");
  return out;
}

Result<void> check_limits(const StepOutput& output) {
  auto over = [](std::string_view what, size_t found, size_t max) {
    return invalid("workflow exceeded max " + std::string(what) +
                   " per tick: " + std::to_string(found) + " > " + std::to_string(max));
  };
  if (output.effects.size() > kMaxEffects)
    return over("effects", output.effects.size(), kMaxEffects);
  if (output.events.size() > kMaxEvents)
    return over("domain events", output.events.size(), kMaxEvents);
  size_t bytes = (output.state ? output.state->size() : 0) +
                 (output.annotations ? output.annotations->size() : 0);
  for (const Event& e : output.events)
    bytes += e.schema.size() + e.value.size() + (e.key ? e.key->size() : 0);
  for (const EmittedEffect& e : output.effects)
    bytes += e.effect.size() + e.params.size() + (e.issuer_ref ? e.issuer_ref->size() : 0) +
             (e.idempotency_key ? e.idempotency_key->size() : 0);
  if (bytes > kMaxOutputBytes) return over("output bytes", bytes, kMaxOutputBytes);
  return {};
}

Bytes idempotency_key(const Origin& origin, std::string_view effect, std::string_view effect_hash,
                      BytesView requested, uint64_t index) {
  Map map{{"origin_workflow", origin.workflow},
          {"origin_instance_key", octets(origin.key)},
          {"effect", effect},
          {"effect_hash", effect_hash},
          {"requested_idempotency_key", octets(requested)},
          {"effect_index", index},
          {"emitted_at_seq", origin.emitted_at_seq}};
  if (!origin.workflow_hash.empty()) map.emplace_back("origin_workflow_hash", origin.workflow_hash);
  return Bytes(view(cbor::hash_of(Value(std::move(map)))));
}

Bytes intent_hash(const IntentIdentity& identity, BytesView params, BytesView idempotency_key) {
  Map map{{"effect", identity.effect},
          {"params", octets(params)},
          {"idempotency_key", octets(idempotency_key)}};
  auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) map.emplace_back(name, value);
  };
  add("effect_hash", identity.effect_hash);
  add("executor_module", identity.executor_module);
  add("executor_module_hash", identity.executor_module_hash);
  add("executor_entrypoint", identity.executor_entrypoint);
  return Bytes(view(cbor::hash_of(Value(std::move(map)))));
}

}  // namespace pawl::worlds

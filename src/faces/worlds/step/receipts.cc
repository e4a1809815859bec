// How an answer comes back: to the cell that asked and to no other, whatever the routes say now. A
// receipt that does not fit is a fault, recorded with what came of it.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/step/engine.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

Value some_text(const std::string& text) { return text.empty() ? Value() : Value(text); }

// Older modules know three effects by events of their own.
struct Typed {
  std::string_view effect, schema;
};
constexpr Typed kTyped[] = {{"sys/timer.set@1", "sys/TimerFired@1"},
                            {"sys/blob.put@1", "sys/BlobPutResult@1"},
                            {"sys/blob.get@1", "sys/BlobGetResult@1"}};

}  // namespace

Bytes signed_bytes(const Receipt& r) {
  return cbor::canonical(cbor::Map{
      {"intent_hash", hash_text(r.intent)}, {"status", r.status}, {"payload", octets(r.payload)}});
}

cbor::Map Engine::envelope(const Pending& i) {
  cbor::Map out{{"origin_module_id", i.workflow},
                {"origin_workflow_hash", some_text(i.workflow_hash)},
                {"origin_instance_key", i.keyed ? octets(i.key) : Value()},
                {"intent_id", hash_text(i.intent)},
                {"effect", i.identity.effect},
                {"effect_hash", some_text(i.identity.effect_hash)},
                {"executor_module", some_text(i.identity.executor_module)},
                {"executor_module_hash", some_text(i.identity.executor_module_hash)},
                {"executor_entrypoint", some_text(i.identity.executor_entrypoint)},
                {"params_hash", hash_text(sha256(i.params))},
                {"issuer_ref", i.issuer_ref ? Value(*i.issuer_ref) : Value()},
                {"emitted_at_seq", i.emitted_at_seq}};
  return out;
}

// The event as the workflow takes it: as it is, or as the arm that names its schema.
std::optional<Event> Engine::fit(const Workflow& w, std::string_view schema,
                                 const Value& value) const {
  auto normal = normalize_named(value, schema, loaded_->schemas);
  if (!normal) return {};
  if (w.def.event == schema || (w.event->form == Form::ref && w.event->ref == schema))
    return Event{w.def.event, cbor::canonical(*normal), {}};
  auto arm = w.arms.find(std::string(schema));
  if (arm == w.arms.end()) return {};
  auto wrapped =
      normalize(cbor::Map{{"$tag", arm->second}, {"$value", *normal}}, *w.event, loaded_->schemas);
  if (!wrapped) return {};
  return Event{w.def.event, cbor::canonical(*wrapped), {}};
}

void Engine::unlist(Cells& cells, BytesView intent) {
  auto& open = cells.now.inflight;
  auto it =
      std::find_if(open.begin(), open.end(), [&](const Inflight& i) { return i.intent == intent; });
  if (it == open.end()) return;
  if (it->effect == "sys/timer.set@1") --head_.timers;
  --head_.inflight;
  open.erase(it);
  if (open.empty() && cells.now.status == Status::waiting) cells.now.status = Status::running;
}

Result<void> Engine::accept_receipt(Receipt receipt) {
  TRY_OK(refuse_while_busy());
  TRY(auto intent, turn_.read_as<Pending>(pending_key(place_, receipt.intent), decode_pending));
  if (!intent)
    return fail(Code::not_found, "receipt.unknown",
                "unknown effect receipt for " + hash_text(receipt.intent));
  if (receipt.status != "ok" && receipt.status != "error" && receipt.status != "timeout")
    return fail(Code::invalid, "receipt.decode",
                "receipt status '" + receipt.status + "' is none of ok, error, timeout");
  const Pending known = *intent;
  TRY_OK(settle_receipt(known, std::move(receipt)));
  return drain();
}

Result<void> Engine::fire_timer(BytesView intent) {
  TRY_OK(refuse_while_busy());
  TRY(auto timer, turn_.read_as<Pending>(pending_key(place_, intent), decode_pending));
  if (!timer) return {};  // dropped meanwhile: nobody waits for it
  TRY(Value params, cbor::decode(timer->params));
  const Value* due = params.find("deliver_at_ns");
  const Value* key = params.find("key");
  const uint64_t at =
      std::max(static_cast<uint64_t>(turn_.now()), due ? due->as_uint64().value_or(0) : 0);
  Receipt receipt{
      Bytes(intent),
      "ok",
      cbor::canonical(cbor::Map{{"delivered_at_ns", at}, {"key", key ? *key : Value()}}),
      {},
      Bytes(64, '\0')};
  return accept_receipt(std::move(receipt));
}

// What is wrong with a receipt, if anything; its payload is canonical afterwards where it fits.
Result<void> Engine::check_receipt(const Pending& intent, Receipt& receipt) const {
  auto bad = [](std::string why) {
    return fail(Code::invalid, "receipt.invalid_payload", std::move(why));
  };
  const DeclaredEffect* effect = loaded_->effect(intent.identity.effect);
  const Module* executor = effect ? loaded_->module(effect->def.impl.module) : nullptr;
  if (!effect || effect->hash != intent.identity.effect_hash)
    return bad("receipt effect hash mismatch for '" + intent.identity.effect + "'");
  if (!executor || executor->hash != intent.identity.executor_module_hash)
    return bad("receipt executor module hash mismatch for '" + intent.identity.effect + "'");
  auto payload = normalize_bytes(receipt.payload, effect->def.receipt, loaded_->schemas);
  if (payload)
    receipt.payload = std::move(*payload);
  else if (receipt.status == "ok")
    return bad("failed to decode receipt payload: receipt payload for '" + intent.identity.effect +
               "' failed schema '" + effect->def.receipt + "': " + payload.error().message);
  return {};
}

// The receipt as the workflow takes it; nothing when no arm does.
Result<std::optional<Event>> Engine::receipt_event(const Workflow& w, const Pending& intent,
                                                   const Receipt& receipt) const {
  const Value cost = receipt.cost_cents ? Value(*receipt.cost_cents) : Value();
  cbor::Map body = envelope(intent);
  body.emplace_back("receipt_payload", octets(receipt.payload));
  body.emplace_back("status", receipt.status);
  body.emplace_back("cost_cents", cost);
  body.emplace_back("signature", octets(receipt.signature));
  auto event = fit(w, "sys/EffectReceiptEnvelope@1", Value(std::move(body)));
  for (const Typed& typed : kTyped) {
    if (event || typed.effect != intent.identity.effect) continue;
    TRY(Value params, cbor::decode(intent.params));
    auto answer = cbor::decode(receipt.payload);
    event = fit(w, typed.schema,
                cbor::Map{{"intent_hash", hash_text(intent.intent)},
                          {"workflow", intent.workflow},
                          {"effect", intent.identity.effect},
                          {"status", receipt.status},
                          {"requested", params},
                          {"receipt", answer ? *answer : Value()},
                          {"cost_cents", cost},
                          {"signature", octets(receipt.signature)}});
  }
  if (event && intent.keyed) event->key = intent.key;
  return event;
}

Result<void> Engine::settle_receipt(const Pending& intent, Receipt receipt) {
  auto fits = check_receipt(intent, receipt);
  // Whoever cannot sign for the executor settles nothing: the intent stays open for the one who
  // can.
  TRY_OK(check_signature(intent, receipt));
  Moved moved;
  if (intent.identity.effect == "sys/blob.get@1" && receipt.status == "ok" && fits) {
    TRY(Bytes digest, blobs_.put(receipt.payload));
    moved = {hash_text(digest), receipt.payload.size()};
  }
  // blob.put brings its own.
  const DeclaredEffect* effect = intent.identity.effect == "sys/blob.put@1"
                                     ? nullptr
                                     : loaded_->effect(intent.identity.effect);
  if (effect && receipt.status == "ok") keep_blobs(receipt.payload, effect->def.receipt);
  const Moment moment = next_moment();
  TRY_OK(record(effect_receipt_record(receipt, moved, moment),
                {{"i", intent.intent}, {"c", cell_name(intent.workflow, intent.key)}}));
  ++(receipt.status == "ok"      ? head_.receipts_ok
     : receipt.status == "error" ? head_.receipts_error
                                 : head_.receipts_timeout);
  if (!fits) return fault(intent, receipt, moment, fits.error().reason, fits.error().message);
  const Workflow* w = loaded_->workflow(intent.workflow);
  if (!w)
    return fault(intent, receipt, moment, "receipt.delivery_failed",
                 "workflow '" + intent.workflow + "' is no longer in the manifest");
  TRY(std::optional<Event> event, receipt_event(*w, intent, receipt));
  if (!event)
    return fault(intent, receipt, moment, "receipt.delivery_failed",
                 "event schema '" + w->def.event + "' of workflow '" + w->def.name +
                     "' takes no receipt of '" + intent.identity.effect + "'");
  TRY(Cells cells, read_cell(*w, intent.key));
  turn_.erase(pending_key(place_, intent.intent));
  turn_.withdraw(effect_id(place_, hex(intent.intent)));
  unlist(cells, intent.intent);
  if (cells.before) save(w->def.name, intent.key, std::move(cells));
  mail_.push({w, std::move(*event), moment});
  return {};
}

Result<void> Engine::fault(const Pending& intent, const Receipt& receipt, const Moment& moment,
                           std::string code, std::string message) {
  const Workflow* w = loaded_->workflow(intent.workflow);
  turn_.erase(pending_key(place_, intent.intent));
  turn_.withdraw(effect_id(place_, hex(intent.intent)));
  std::optional<Event> rejected;
  uint64_t dropped = 0;
  if (w) {
    cbor::Map body = envelope(intent);
    body.emplace_back("status", receipt.status);
    body.emplace_back("error_code", code);
    body.emplace_back("error_message", message);
    body.emplace_back("payload_hash", hash_text(sha256(receipt.payload)));
    body.emplace_back("payload_size", uint64_t{receipt.payload.size()});
    rejected = fit(*w, "sys/EffectReceiptRejected@1", Value(std::move(body)));
    TRY(Cells cells, read_cell(*w, intent.key));
    unlist(cells, intent.intent);
    if (!rejected) {
      dropped = cells.now.inflight.size();
      TRY_OK(drop_pending(cells));
      cells.now.status = Status::failed;
      cells.now.failure = code + ": " + message;
    }
    save(w->def.name, intent.key, std::move(cells));
  }
  cbor::Map data{{"origin_module_id", intent.workflow}};
  if (intent.keyed) data.emplace_back("origin_instance_key", octets(intent.key));
  for (auto& [name, value] : cbor::Map{{"intent_id", hash_text(intent.intent)},
                                       {"effect", intent.identity.effect},
                                       {"status", receipt.status},
                                       {"error_code", code},
                                       {"error_message", message},
                                       {"delivered_rejected", rejected.has_value()},
                                       {"workflow_failed", !rejected.has_value()},
                                       {"dropped_pending_receipts", dropped}})
    data.emplace_back(name, value);
  TRY_OK(record(custom_record("workflow.receipt_fault", Value(std::move(data))),
                {{"c", cell_name(intent.workflow, intent.key)}}));
  if (!rejected) return {};
  if (intent.keyed) rejected->key = intent.key;
  mail_.push({w, std::move(*rejected), moment});
  return {};
}

Result<void> Engine::check_signature(const Pending& intent, const Receipt& receipt) const {
  if (shadowing_ || is_done_here(intent.identity.effect)) return {};
  for (const auto& [effect, key] : loaded_->manifest.executor_keys) {
    if (effect != intent.identity.effect) continue;
    auto public_key = unbase64(key);
    if (public_key && verify_ed25519(*public_key, signed_bytes(receipt), receipt.signature))
      return {};
    return fail(Code::denied, "receipt.signature_invalid",
                "the signature of this receipt is not that of the executor of '" + effect +
                    "' that the manifest names");
  }
  return {};
}

// A frame is progress, not the answer: it reaches the cell and the intent stays open.
Result<bool> Engine::accept_frame(StreamFrame frame) {
  TRY_OK(refuse_while_busy());
  auto drop = [&](std::string_view reason, std::string_view message) -> Result<bool> {
    cbor::Map data{{"origin_module_id", frame.origin_module_id}};
    if (frame.origin_instance_key)
      data.emplace_back("origin_instance_key", octets(*frame.origin_instance_key));
    for (auto& [name, value] : cbor::Map{{"intent_id", hash_text(frame.intent)},
                                         {"effect", frame.identity.effect},
                                         {"emitted_at_seq", frame.emitted_at_seq},
                                         {"seq", frame.seq},
                                         {"kind", frame.kind},
                                         {"reason_code", reason},
                                         {"reason_message", message}})
      data.emplace_back(name, value);
    TRY_OK(record(custom_record("workflow.stream_drop", Value(std::move(data))),
                  {{"i", frame.intent}}));
    return false;
  };
  TRY(auto intent, turn_.read_as<Pending>(pending_key(place_, frame.intent), decode_pending));
  const Workflow* w = intent ? loaded_->workflow(intent->workflow) : nullptr;
  if (!w) return drop("stream.unknown_intent", "no in-flight intent context for frame");
  const std::optional<Bytes> key = intent->keyed ? std::optional<Bytes>(intent->key) : std::nullopt;
  auto differs = [](const std::string& given, const std::string& known) {
    return !given.empty() && given != known;
  };
  if (frame.origin_module_id != intent->workflow ||
      frame.identity.effect != intent->identity.effect ||
      frame.emitted_at_seq != intent->emitted_at_seq || frame.origin_instance_key != key ||
      differs(frame.origin_workflow_hash, intent->workflow_hash) ||
      differs(frame.identity.effect_hash, intent->identity.effect_hash) ||
      differs(frame.identity.executor_module, intent->identity.executor_module) ||
      differs(frame.identity.executor_module_hash, intent->identity.executor_module_hash) ||
      differs(frame.identity.executor_entrypoint, intent->identity.executor_entrypoint))
    return drop("stream.identity_mismatch",
                "frame identity does not match recorded in-flight intent");
  TRY(Cells cells, read_cell(*w, intent->key));
  auto& open = cells.now.inflight;
  auto at = std::find_if(open.begin(), open.end(),
                         [&](const Inflight& i) { return i.intent == frame.intent; });
  if (at == open.end())
    return drop("stream.unknown_intent", "no in-flight intent context for frame");
  if (frame.seq <= at->last_stream_seq)
    return drop("stream.non_monotonic", "frame seq is duplicate or out-of-order");

  cbor::Map body = envelope(*intent);
  body.emplace_back("seq", frame.seq);
  body.emplace_back("kind", frame.kind);
  body.emplace_back("payload", octets(frame.payload));
  body.emplace_back("payload_ref", some_text(frame.payload_ref));
  body.emplace_back("signature", octets(frame.signature));
  auto event = fit(*w, "sys/EffectStreamFrame@1", Value(std::move(body)));
  if (!event)
    return fail(Code::invalid, "receipt.workflow_unsupported",
                "workflow '" + w->def.name +
                    "' takes no stream frames: add an arm for sys/EffectStreamFrame@1 to '" +
                    w->def.event + "'");
  if (frame.seq > at->last_stream_seq + 1) {
    cbor::Map data{{"origin_module_id", intent->workflow}};
    if (key) data.emplace_back("origin_instance_key", octets(*key));
    for (auto& [name, value] : cbor::Map{{"intent_id", hash_text(frame.intent)},
                                         {"effect", frame.identity.effect},
                                         {"expected_seq", at->last_stream_seq + 1},
                                         {"observed_seq", frame.seq}})
      data.emplace_back(name, value);
    TRY_OK(record(custom_record("workflow.stream_gap", Value(std::move(data))),
                  {{"i", frame.intent}}));
  }
  if (auto blob = parse_hash(frame.payload_ref))
    turn_.write(reads_key(place_, head_.height), std::move(*blob));
  const Moment moment = next_moment();
  TRY_OK(record(stream_frame_record(frame, moment),
                {{"i", frame.intent}, {"c", cell_name(intent->workflow, intent->key)}}));
  ++head_.frames;
  at->last_stream_seq = frame.seq;
  save(w->def.name, intent->key, std::move(cells));
  if (key) event->key = key;
  mail_.push({w, std::move(*event), moment});
  TRY_OK(drain());
  return true;
}

}  // namespace pawl::worlds

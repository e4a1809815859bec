#include "faces/worlds/step/settlement.h"

#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

Value text_or_null(const std::string& text) { return text.empty() ? Value() : Value(text); }

// Older modules take the receipts of three effects as events of their own.
struct TypedReceipt {
  std::string_view effect, schema;
};
constexpr TypedReceipt kTypedReceipts[] = {{kTimerEffect, "sys/TimerFired@1"},
                                           {kBlobPutEffect, "sys/BlobPutResult@1"},
                                           {kBlobGetEffect, "sys/BlobGetResult@1"}};

Value cost_value(const IntentReceipt& receipt) {
  return receipt.cost_cents ? Value(*receipt.cost_cents) : Value();
}

uint64_t& count_of(WorldHead& head, std::string_view status) {
  if (status == "ok") return head.receipts_ok;
  return status == "error" ? head.receipts_error : head.receipts_timeout;
}

Value rejected_body(const PendingIntent& intent, const IntentReceipt& receipt, const Error& why) {
  cbor::Map body = intent_envelope(intent);
  body.emplace_back("status", receipt.status);
  body.emplace_back("error_code", why.reason);
  body.emplace_back("error_message", why.message);
  body.emplace_back("payload_hash", hash_text(sha256(receipt.payload)));
  body.emplace_back("payload_size", uint64_t{receipt.payload.size()});
  return Value(std::move(body));
}

Bytes fault_record(const PendingIntent& intent, const IntentReceipt& receipt, const Error& why,
                   bool rejected, uint64_t dropped) {
  cbor::Map data{{"origin_module_id", intent.workflow}};
  if (intent.keyed) data.emplace_back("origin_instance_key", octets(intent.key));
  data.emplace_back("intent_id", hash_text(intent.intent));
  data.emplace_back("effect", intent.identity.effect);
  data.emplace_back("status", receipt.status);
  data.emplace_back("error_code", why.reason);
  data.emplace_back("error_message", why.message);
  data.emplace_back("delivered_rejected", rejected);
  data.emplace_back("workflow_failed", !rejected);
  data.emplace_back("dropped_pending_receipts", dropped);
  return custom_record("workflow.receipt_fault", Value(std::move(data)));
}

}  // namespace

Bytes signed_bytes(const IntentReceipt& r) {
  return cbor::canonical(cbor::Map{
      {"intent_hash", hash_text(r.intent)}, {"status", r.status}, {"payload", octets(r.payload)}});
}

cbor::Map intent_envelope(const PendingIntent& i) {
  return {{"origin_module_id", i.workflow},
          {"origin_workflow_hash", text_or_null(i.workflow_hash)},
          {"origin_instance_key", i.keyed ? octets(i.key) : Value()},
          {"intent_id", hash_text(i.intent)},
          {"effect", i.identity.effect},
          {"effect_hash", text_or_null(i.identity.effect_hash)},
          {"executor_module", text_or_null(i.identity.executor_module)},
          {"executor_module_hash", text_or_null(i.identity.executor_module_hash)},
          {"executor_entrypoint", text_or_null(i.identity.executor_entrypoint)},
          {"params_hash", hash_text(sha256(i.params))},
          {"issuer_ref", i.issuer_ref ? Value(*i.issuer_ref) : Value()},
          {"emitted_at_seq", i.emitted_at_seq}};
}

std::optional<Event> fit_event(const LoadedManifest& loaded, const Workflow& w,
                               std::string_view schema, const Value& value) {
  auto normal = normalize_named(value, schema, loaded.schemas);
  if (!normal) return {};
  if (w.def.event == schema || (w.event->form == Form::ref && w.event->ref == schema))
    return Event{w.def.event, cbor::canonical(*normal), {}};
  auto arm = w.arms.find(std::string(schema));
  if (arm == w.arms.end()) return {};
  auto wrapped =
      normalize(cbor::Map{{"$tag", arm->second}, {"$value", *normal}}, *w.event, loaded.schemas);
  if (!wrapped) return {};
  return Event{w.def.event, cbor::canonical(*wrapped), {}};
}

// Refuses a receipt that does not fit its effect. Makes its payload canonical where it fits.
Result<void> Settlement::check_receipt(const PendingIntent& intent, IntentReceipt& receipt) const {
  auto bad = [](std::string why) {
    return fail(Code::invalid, "receipt.invalid_payload", std::move(why));
  };
  const LoadedManifest& loaded = turn_.loaded();
  const DeclaredEffect* effect = loaded.effect(intent.identity.effect);
  const Module* executor = effect ? loaded.module(effect->def.impl.module) : nullptr;
  if (!effect || effect->hash != intent.identity.effect_hash)
    return bad("receipt effect hash mismatch for '" + intent.identity.effect + "'");
  if (!executor || executor->hash != intent.identity.executor_module_hash)
    return bad("receipt executor module hash mismatch for '" + intent.identity.effect + "'");
  auto payload = normalize_bytes(receipt.payload, effect->def.receipt, loaded.schemas);
  if (payload)
    receipt.payload = std::move(*payload);
  else if (receipt.status == "ok")
    return bad("failed to decode receipt payload: receipt payload for '" + intent.identity.effect +
               "' failed schema '" + effect->def.receipt + "': " + payload.error().message);
  return {};
}

Result<void> Settlement::check_signature(const PendingIntent& intent,
                                         const IntentReceipt& receipt) const {
  const Manifest& manifest = turn_.loaded().manifest;
  if (turn_.shadow || is_done_here(intent.identity.effect, manifest)) return {};
  for (const auto& [effect, key] : manifest.executor_keys) {
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

Result<Moment> Settlement::record(const PendingIntent& intent, const IntentReceipt& receipt,
                                  bool fits) {
  StoredBytes stored;
  if (intent.identity.effect == kBlobGetEffect && receipt.status == "ok" && fits) {
    TRY(Bytes digest, turn_.blobs.put(receipt.payload));
    stored = {hash_text(digest), receipt.payload.size()};
  }
  // blob.put brings its own blob.
  if (intent.identity.effect != kBlobPutEffect && receipt.status == "ok")
    if (const DeclaredEffect* effect = turn_.loaded().effect(intent.identity.effect))
      turn_.keep_blobs(receipt.payload, effect->def.receipt);
  const Moment moment = turn_.next_moment();
  TRY_OK(turn_.record(effect_receipt_record(receipt, stored, moment),
                      {{"i", intent.intent}, {"c", cell_name(intent.workflow, intent.key)}}));
  ++count_of(turn_.head, receipt.status);
  return moment;
}

// The receipt as the workflow takes it; nothing when no arm of its event takes receipts.
Result<std::optional<Event>> Settlement::receipt_event(const Workflow& w,
                                                       const PendingIntent& intent,
                                                       const IntentReceipt& receipt) const {
  cbor::Map body = intent_envelope(intent);
  body.emplace_back("receipt_payload", octets(receipt.payload));
  body.emplace_back("status", receipt.status);
  body.emplace_back("cost_cents", cost_value(receipt));
  body.emplace_back("signature", octets(receipt.signature));
  auto event = fit_event(turn_.loaded(), w, "sys/EffectReceiptEnvelope@1", Value(std::move(body)));
  for (const TypedReceipt& typed : kTypedReceipts) {
    if (event || typed.effect != intent.identity.effect) continue;
    TRY(Value params, cbor::decode(intent.params));
    auto answer = cbor::decode(receipt.payload);
    event = fit_event(turn_.loaded(), w, typed.schema,
                      cbor::Map{{"intent_hash", hash_text(intent.intent)},
                                {"workflow", intent.workflow},
                                {"effect", intent.identity.effect},
                                {"status", receipt.status},
                                {"requested", params},
                                {"receipt", answer ? *answer : Value()},
                                {"cost_cents", cost_value(receipt)},
                                {"signature", octets(receipt.signature)}});
  }
  if (event && intent.keyed) event->key = intent.key;
  return event;
}

Result<void> Settlement::settle(const PendingIntent& intent, IntentReceipt receipt) {
  auto fits = check_receipt(intent, receipt);
  // A caller that cannot sign for the executor settles nothing: the intent stays open.
  TRY_OK(check_signature(intent, receipt));
  TRY(const Moment moment, record(intent, receipt, fits.has_value()));
  if (!fits) return fault(intent, receipt, moment, fits.error());
  const Workflow* w = turn_.loaded().workflow(intent.workflow);
  if (!w)
    return fault(intent, receipt, moment,
                 {Code::invalid, "receipt.delivery_failed",
                  "workflow '" + intent.workflow + "' is no longer in the manifest"});
  TRY(std::optional<Event> event, receipt_event(*w, intent, receipt));
  if (!event)
    return fault(intent, receipt, moment,
                 {Code::invalid, "receipt.delivery_failed",
                  "event schema '" + w->def.event + "' of workflow '" + w->def.name +
                      "' takes no receipt of '" + intent.identity.effect + "'"});
  TRY(CellEdit cell, turn_.read_cell(*w, intent.key));
  intents_.settle(intent);
  intents_.unlist(cell, intent.intent);
  if (cell.before) turn_.save(w->def.name, intent.key, std::move(cell));
  turn_.mail.push({w, std::move(*event), moment});
  return {};
}

Result<void> Settlement::fault(const PendingIntent& intent, const IntentReceipt& receipt,
                               const Moment& moment, const Error& why) {
  const Workflow* w = turn_.loaded().workflow(intent.workflow);
  intents_.settle(intent);
  std::optional<Event> rejected;
  uint64_t dropped = 0;
  if (w) {
    rejected = fit_event(turn_.loaded(), *w, "sys/EffectReceiptRejected@1",
                         rejected_body(intent, receipt, why));
    TRY(CellEdit cell, turn_.read_cell(*w, intent.key));
    intents_.unlist(cell, intent.intent);
    if (!rejected) {
      dropped = cell.now.inflight.size();
      intents_.drop_all(cell);
      cell.now.status = InstanceStatus::failed;
      cell.now.failure = why.reason + ": " + why.message;
    }
    turn_.save(w->def.name, intent.key, std::move(cell));
  }
  TRY_OK(turn_.record(fault_record(intent, receipt, why, rejected.has_value(), dropped),
                      {{"c", cell_name(intent.workflow, intent.key)}}));
  if (!rejected) return {};
  if (intent.keyed) rejected->key = intent.key;
  turn_.mail.push({w, std::move(*rejected), moment});
  return {};
}

}  // namespace pawl::worlds

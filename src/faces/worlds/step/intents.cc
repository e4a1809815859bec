#include "faces/worlds/step/intents.h"

#include <algorithm>
#include <array>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/step/internal_effects.h"

namespace pawl::worlds {
namespace {

// The clock keeps timers, this process sends HTTP requests, and everything else waits for an
// executor that polls.
struct Destination {
  std::string_view effect;
  To to;
};
constexpr std::array<Destination, 2> kDestinations{
    {{kTimerEffect, To::clock}, {kHttpEffect, To::member}}};

To destination_of(std::string_view effect, const Manifest& manifest) {
  const auto& external = manifest.external_effects;
  if (std::find(external.begin(), external.end(), effect) != external.end()) return To::worker;
  for (const Destination& row : kDestinations)
    if (row.effect == effect) return row.to;
  return To::worker;
}

// The params of blob.put name the hash of their bytes before the intent is hashed.
Result<cbor::Value> with_blob_ref(cbor::Value params) {
  const cbor::Value* bytes = params.find("bytes");
  if (!bytes || !bytes->is_bytes()) return params;
  const std::string name = hash_text(sha256(bytes->bytes()));
  cbor::Map out{{"bytes", *bytes}, {"blob_ref", name}};
  const cbor::Value* refs = params.find("refs");
  out.emplace_back("refs", refs && !refs->is_null() ? *refs : cbor::Value(cbor::Array{}));
  if (const cbor::Value* given = params.find("blob_ref");
      given && given->is_text() && given->text() != name)
    return fail(Code::unprocessable, "effect.manager",
                "effect manager error: blob_ref " + given->text() +
                    " is not the hash of the bytes, which is " + name);
  return cbor::Value(std::move(out));
}

std::unexpected<Error> bad_params(const Error& error) {
  constexpr std::string_view kValueText = "value does not conform to schema";
  std::string why = error.message;
  if (why.starts_with(kValueText))
    why = "params do not conform to schema" + why.substr(kValueText.size());
  return fail(Code::unprocessable, "effect.manager", "effect manager error: " + why);
}

}  // namespace

bool is_done_here(std::string_view effect, const Manifest& manifest) {
  return is_internal_effect(effect) || destination_of(effect, manifest) != To::worker;
}

Result<Bytes> Intents::canonical_params(const EmittedEffect& emitted,
                                        const DeclaredEffect& effect) const {
  auto decoded = cbor::decode(emitted.params);
  if (!decoded) return bad_params(decoded.error());
  auto normal = normalize_named(*decoded, effect.def.params, turn_.loaded().schemas);
  if (!normal) return bad_params(normal.error());
  if (emitted.effect != kBlobPutEffect) return cbor::canonical(*normal);
  TRY(cbor::Value filled, with_blob_ref(std::move(*normal)));
  return cbor::canonical(filled);
}

Result<PendingIntent> Intents::prepare(const Delivery& item, const EmittedEffect& emitted,
                                       uint64_t index) const {
  const Workflow& w = *item.workflow;
  const LoadedManifest& loaded = turn_.loaded();
  const DeclaredEffect* effect = loaded.effect(emitted.effect);
  if (!effect || !w.may_emit.contains(emitted.effect))
    return fail(Code::unprocessable, "workflow.output_invalid",
                "invalid workflow output: workflow '" + w.def.name +
                    "' emitted undeclared effect '" + emitted.effect +
                    "'; declare the effect in workflow.effects_emitted");
  const Module* executor = loaded.module(effect->def.impl.module);
  PendingIntent out;
  TRY(out.params, canonical_params(emitted, *effect));
  out.workflow = w.def.name;
  out.workflow_hash = w.hash;
  out.key = item.key();
  out.keyed = w.def.keyed();
  out.identity = {effect->def.name, effect->hash, effect->def.impl.module,
                  executor ? executor->hash : std::string(), effect->def.impl.entrypoint};
  out.requested_key = emitted.idempotency_key.value_or(Bytes());
  out.issuer_ref = emitted.issuer_ref;
  out.emitted_at_seq = item.moment.height;
  out.module_version = turn_.runtime.modules.version_of(*w.module);
  const Origin origin{w.def.name, w.hash, Bytes(item.key()), item.moment.height};
  out.idempotency_key =
      idempotency_key(origin, effect->def.name, effect->hash, out.requested_key, index);
  out.intent = intent_hash(out.identity, out.params, out.idempotency_key);
  return out;
}

Result<void> Intents::record(const PendingIntent& intent) {
  StoredBytes stored;
  std::string own_blob;  // the blob that the params of blob.put bring along
  if (intent.identity.effect == kBlobPutEffect) {
    TRY(Bytes digest, turn_.blobs.put(intent.params));
    stored = {hash_text(digest), intent.params.size()};
    TRY(cbor::Value params, cbor::decode(intent.params));
    own_blob = params.text_or("blob_ref");
  }
  turn_.keep_blobs(intent.params, turn_.loaded().effect(intent.identity.effect)->def.params,
                   own_blob);
  TRY_OK(turn_.record(effect_intent_record(intent, stored),
                      {{"i", intent.intent}, {"c", cell_name(intent.workflow, intent.key)}}));
  ++turn_.head.intents;
  if (turn_.shadow) turn_.shadow->predicted.push_back(intent);
  return {};
}

Result<void> Intents::open(const PendingIntent& intent, CellEdit& cell) {
  TRY_OK(record(intent));
  cell.now.inflight.push_back({intent.intent, intent.identity.effect, intent.emitted_at_seq, 0});
  ++turn_.head.inflight;
  if (intent.identity.effect == kTimerEffect) ++turn_.head.timers;
  turn_.kernel.write(pending_key(turn_.id, intent.intent), encode(intent),
                     std::make_shared<const PendingIntent>(intent));
  if (turn_.world().detached || turn_.recorded) return {};
  return offer(intent);
}

Result<void> Intents::offer(const PendingIntent& intent) {
  Effect effect{effect_id(turn_.id, hex(intent.intent)),
                destination_of(intent.identity.effect, turn_.loaded().manifest),
                std::string(kProgram),
                turn_.id.tenant,
                intent.identity.effect,
                0,
                {}};
  if (effect.to == To::clock) {
    TRY(cbor::Value params, cbor::decode(intent.params));
    const cbor::Value* due = params.find("deliver_at_ns");
    const uint64_t at = due ? due->as_uint64().value_or(0) : 0;
    effect.due = at > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<Time>(at);
  } else {
    effect.body = encode(intent);
  }
  turn_.kernel.open(std::move(effect));
  return {};
}

Result<void> Intents::offer_all() {
  TRY(std::vector<PendingIntent> open, turn_.all_pending());
  for (const PendingIntent& intent : open)
    TRY_OK(offer(intent));
  return {};
}

void Intents::settle(const PendingIntent& intent) {
  turn_.kernel.erase(pending_key(turn_.id, intent.intent));
  turn_.kernel.withdraw(effect_id(turn_.id, hex(intent.intent)));
}

void Intents::unlist(CellEdit& cell, BytesView intent) {
  auto& open = cell.now.inflight;
  auto it = std::find_if(open.begin(), open.end(),
                         [&](const InflightIntent& i) { return i.intent == intent; });
  if (it == open.end()) return;
  if (it->effect == kTimerEffect) --turn_.head.timers;
  --turn_.head.inflight;
  open.erase(it);
  if (open.empty() && cell.now.status == InstanceStatus::waiting)
    cell.now.status = InstanceStatus::running;
}

void Intents::drop_all(CellEdit& cell) {
  for (const InflightIntent& open : cell.now.inflight) {
    turn_.kernel.erase(pending_key(turn_.id, open.intent));
    turn_.kernel.withdraw(effect_id(turn_.id, hex(open.intent)));
    --turn_.head.inflight;
    if (open.effect == kTimerEffect) --turn_.head.timers;
  }
  cell.now.inflight.clear();
}

}  // namespace pawl::worlds

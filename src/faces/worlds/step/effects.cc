// How an effect leaves: declared, its params canonical, its identity fixed; recorded before anybody
// outside may see it.

#include <array>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/step/engine.h"

namespace pawl::worlds {
namespace {

// Who does what: the clock keeps timers, the engine answers its own, members of this process do
// requests, and everything else waits for an executor that polls.
struct Way {
  std::string_view effect;
  To to;
};
constexpr std::array<Way, 2> kWays{
    {{"sys/timer.set@1", To::clock}, {"sys/http.request@1", To::member}}};

To way_of(std::string_view effect) {
  for (const Way& way : kWays)
    if (way.effect == effect) return way.to;
  return To::worker;
}

// blob.put says what its bytes are called before it is hashed.
Result<cbor::Value> fill_blob(cbor::Value params) {
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

}  // namespace

Result<Pending> Engine::admit_effect(const Delivery& item, const Emitted& emitted,
                                     uint64_t index) const {
  const Workflow& w = *item.workflow;
  const DeclaredEffect* effect = loaded_->effect(emitted.effect);
  if (!effect || !w.may_emit.contains(emitted.effect))
    return fail(Code::unprocessable, "workflow.output_invalid",
                "invalid workflow output: workflow '" + w.def.name +
                    "' emitted undeclared effect '" + emitted.effect +
                    "'; declare the effect in workflow.effects_emitted");
  auto bad_params = [](const Error& e) {
    std::string why = e.message;
    if (why.starts_with("value does not conform to schema"))
      why = "params do not conform to schema" + why.substr(32);
    return fail(Code::unprocessable, "effect.manager", "effect manager error: " + why);
  };
  auto decoded = cbor::decode(emitted.params);
  if (!decoded) return bad_params(decoded.error());
  auto params = normalize_named(*decoded, effect->def.params, loaded_->schemas);
  if (!params) return bad_params(params.error());
  cbor::Value normal = std::move(*params);
  if (emitted.effect == "sys/blob.put@1") {
    TRY(normal, fill_blob(std::move(normal)));
  }
  const Module* executor = loaded_->module(effect->def.impl.module);
  Pending out;
  out.workflow = w.def.name;
  out.workflow_hash = w.hash;
  out.key = item.key();
  out.keyed = w.def.keyed();
  out.identity = {effect->def.name, effect->hash, effect->def.impl.module,
                  executor ? executor->hash : std::string(), effect->def.impl.entrypoint};
  out.params = cbor::canonical(normal);
  out.requested_key = emitted.idempotency_key.value_or(Bytes());
  out.issuer_ref = emitted.issuer_ref;
  out.emitted_at_seq = item.moment.height;
  out.module_version = runtime_.modules.version_of(*w.module);
  const Origin origin{w.def.name, w.hash, Bytes(item.key()), item.moment.height};
  out.idempotency_key =
      idempotency_key(origin, effect->def.name, effect->hash, out.requested_key, index);
  out.intent = intent_hash(out.identity, out.params, out.idempotency_key);
  return out;
}

Result<void> Engine::open_effect(const Pending& intent, Cells& cells) {
  Moved moved;
  std::string own;  // the blob that the params bring along
  if (intent.identity.effect == "sys/blob.put@1") {
    TRY(Bytes digest, blobs_.put(intent.params));
    moved = {hash_text(digest), intent.params.size()};
    TRY(cbor::Value params, cbor::decode(intent.params));
    own = params.text_or("blob_ref");
  }
  keep_blobs(intent.params, loaded_->effect(intent.identity.effect)->def.params, own);
  TRY_OK(record(effect_intent_record(intent, moved),
                {{"i", intent.intent}, {"c", cell_name(intent.workflow, intent.key)}}));
  ++head_.intents;
  if (shadowing_) predicted_.push_back(intent);
  if (internal(intent.identity.effect)) return {};
  cells.now.inflight.push_back({intent.intent, intent.identity.effect, intent.emitted_at_seq, 0});
  ++head_.inflight;
  if (intent.identity.effect == "sys/timer.set@1") ++head_.timers;
  turn_.write(pending_key(place_, intent.intent), encode(intent),
              std::make_shared<const Pending>(intent));
  if (world_->detached || recorded_) return {};
  return offer(intent);
}

bool Engine::is_done_here(std::string_view effect) {
  return internal(effect) || way_of(effect) != To::worker;
}

Result<void> Engine::offer(const Pending& intent) {
  Effect effect{effect_id(place_, hex(intent.intent)),
                way_of(intent.identity.effect),
                std::string(kProgram),
                place_.tenant,
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
  turn_.open(std::move(effect));
  return {};
}

Result<void> Engine::offer_all() {
  std::vector<Pending> open;
  TRY_OK(turn_.scan(pending_prefix(place_), [&](BytesView, const Cell& cell) {
    if (auto intent = decode_pending(cell.value())) open.push_back(std::move(*intent));
    return true;
  }));
  for (const Pending& intent : open)
    TRY_OK(offer(intent));
  return {};
}

// The instance is over: nobody waits for these any more, and a late receipt is ignored.
Result<void> Engine::drop_pending(Cells& cells) {
  for (const Inflight& open : cells.now.inflight) {
    turn_.erase(pending_key(place_, open.intent));
    turn_.withdraw(effect_id(place_, hex(open.intent)));
    --head_.inflight;
    if (open.effect == "sys/timer.set@1") --head_.timers;
  }
  cells.now.inflight.clear();
  return {};
}

}  // namespace pawl::worlds

// Open work for executors of any kind: poll it, send frames, settle it. A lease is a promise in
// memory; after it, or after a restart, the work is offered again.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {

// The executor's copy: params in JSON and in CBOR, with secrets in their place, and every word it
// needs to send frames and the receipt.
json::Value Service::work_json(const Leased& leased) const {
  json::Object out;
  auto name = parse_effect_id(leased.effect->id);
  auto intent = decode_pending(leased.effect->body);
  if (!name || !intent) return json::Value(std::move(out));
  out.add("world_id", name->world_id.world);
  out.add("intent_hash", hash_text(intent->intent));
  out.add("effect", intent->identity.effect);
  out.add("effect_hash", intent->identity.effect_hash);
  out.add("executor_module", intent->identity.executor_module);
  out.add("executor_module_hash", intent->identity.executor_module_hash);
  out.add("executor_entrypoint", intent->identity.executor_entrypoint);
  out.add("origin_module_id", intent->workflow);
  out.add("origin_workflow_hash", intent->workflow_hash);
  if (intent->keyed) out.add("origin_instance_key_b64", base64(intent->key));
  out.add("emitted_at_seq", intent->emitted_at_seq);
  out.add("idempotency_key_b64", base64(intent->idempotency_key));
  if (!intent->requested_key.empty())
    out.add("requested_idempotency_key_b64", base64(intent->requested_key));
  if (intent->issuer_ref) out.add("issuer_ref", *intent->issuer_ref);
  out.add("leased_until_ns", static_cast<int64_t>(leased.until));
  auto params = cbor::decode(intent->params);
  auto defs = loaded(name->world_id);
  auto filled =
      params && defs && *defs
          ? inject_secrets(name->world_id, **defs, *params)
          : Result<cbor::Value>(fail(Code::corrupt, "store.error", "the params are damaged"));
  if (!filled) {
    out.add("error",
            json::object({{"code", filled.error().reason}, {"message", filled.error().message}}));
    return json::Value(std::move(out));
  }
  out.add("params", plain_json(*filled));
  out.add("params_cbor_b64", base64(cbor::canonical(*filled)));
  return json::Value(std::move(out));
}

void Service::poll(Request request, Respond respond) {
  auto body = body_of(request);
  if (!body) return respond(refuse(body.error()));
  Poll poll;
  poll.tenant = request.caller.tenant;
  poll.worker = std::string(body->string_or("worker", request.caller.user));
  bool plain = true;
  if (const json::Value* effects = body->find("effects"); effects && effects->is_array())
    for (const json::Value& effect : effects->array())
      effect.is_string() ? poll.queues.push_back(effect.string()) : void(plain = false);
  auto number = [&](std::string_view name, uint64_t default_value, uint64_t max) {
    auto n = number_field(*body, name);
    if (!n) plain = false;
    return std::min(n ? n->value_or(default_value) : default_value, max);
  };
  poll.limit = std::max<uint64_t>(1, number("limit", 1, 1000));
  poll.lease = static_cast<Time>(number("lease_ms", 30'000, 3'600'000)) * kMillisecond;
  poll.wait = static_cast<Time>(number("wait_ms", 0, 60'000)) * kMillisecond;
  if (poll.queues.empty() || !plain)
    return respond(refuse(
        {Code::invalid, "invalid_request",
         "poll wants {\"effects\": [names], \"limit\": n, \"lease_ms\": n, \"wait_ms\": n}"}));
  uint64_t waiting = work_.poll(
      std::move(poll), [this, respond = std::move(respond)](std::vector<Leased> found) mutable {
        json::Array work;
        for (const Leased& leased : found)
          work.push_back(work_json(leased));
        respond(wire::json_response(
            200, json::print(json::object({{"work", json::Value(std::move(work))}}))));
      });
  if (waiting && request.peer) request.peer->on_leave([this, waiting] { work_.give_up(waiting); });
}

void Service::release(Request request, Respond respond) {
  auto body = body_of(request);
  auto intent =
      body ? parse_hash(body->string_or("intent_hash")) : Result<Bytes>(fail(body.error()));
  if (!intent) return respond(refuse(intent.error()));
  work_.release(
      effect_id({request.caller.tenant, std::string(body->string_or("world_id"))}, hex(*intent)));
  respond(wire::json_response(200, "{\"status\":\"released\"}"));
}

}  // namespace pawl::worlds

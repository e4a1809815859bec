// Open work for executors over HTTP: poll, and give back.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/fields.h"
#include "faces/worlds/http/http_routes.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

// The params come in JSON and in CBOR, beside everything that frames and the receipt must repeat.
json::Value work_json(const OpenWork& work) {
  const PendingIntent& intent = work.intent;
  json::Object out;
  out.add("world_id", work.world);
  out.add("intent_hash", hash_text(intent.intent));
  out.add("effect", intent.identity.effect);
  out.add("effect_hash", intent.identity.effect_hash);
  out.add("executor_module", intent.identity.executor_module);
  out.add("executor_module_hash", intent.identity.executor_module_hash);
  out.add("executor_entrypoint", intent.identity.executor_entrypoint);
  out.add("origin_module_id", intent.workflow);
  out.add("origin_workflow_hash", intent.workflow_hash);
  if (intent.keyed) out.add("origin_instance_key_b64", base64(intent.key));
  out.add("emitted_at_seq", intent.emitted_at_seq);
  out.add("idempotency_key_b64", base64(intent.idempotency_key));
  if (!intent.requested_key.empty())
    out.add("requested_idempotency_key_b64", base64(intent.requested_key));
  if (intent.issuer_ref) out.add("issuer_ref", *intent.issuer_ref);
  out.add("leased_until_ns", static_cast<int64_t>(work.leased_until));
  if (!work.params) {
    const Error& error = work.params.error();
    out.add("error", json::object({{"code", error.reason}, {"message", error.message}}));
    return json::Value(std::move(out));
  }
  out.add("params", plain_json(*work.params));
  out.add("params_cbor_b64", base64(cbor::canonical(*work.params)));
  return json::Value(std::move(out));
}

// A body whose members have the wrong types is read as one that names no effects: the service says
// what it wants.
Result<WorkRequest> parse_poll(const wire::MemberReader& body) {
  WorkRequest out;
  out.worker = std::string(body.value().string_or(http::kPoll["worker"]));
  auto number = [&](const wire::Member& row, uint64_t& into) {
    auto n = body.count(row);
    if (n && *n) into = **n;
    return n.has_value();
  };
  if (!number(http::kPoll["limit"], out.limit) || !number(http::kPoll["lease_ms"], out.lease_ms) ||
      !number(http::kPoll["wait_ms"], out.wait_ms))
    return WorkRequest{};
  const json::Value* effects = body.value().find(http::kPoll["effects"]);
  if (!effects || !effects->is_array()) return out;
  for (const json::Value& effect : effects->array()) {
    if (!effect.is_string()) return WorkRequest{};
    out.effects.push_back(effect.string());
  }
  return out;
}

}  // namespace

void HttpRoutes::poll(Request request, Respond respond) {
  auto body = body_of(request);
  auto wanted = body ? parse_poll(*body) : Result<WorkRequest>(fail(body.error()));
  if (!wanted) return respond(refuse(wanted.error()));
  // A refusal comes from the call itself, an answer from `done`: only one of them responds.
  auto shared = std::make_shared<Respond>(std::move(respond));
  auto waiting = service_.poll(
      request.caller, std::move(*wanted), [shared](std::vector<OpenWork> found) mutable {
        json::Array work;
        for (const OpenWork& item : found)
          work.push_back(work_json(item));
        (*shared)(wire::json_response(
            200, json::print(json::object({{"work", json::Value(std::move(work))}}))));
      });
  if (!waiting) return (*shared)(refuse(waiting.error()));
  if (*waiting && request.peer)
    request.peer->on_leave([this, poll = *waiting] { service_.give_up(poll); });
}

void HttpRoutes::release(Request request, Respond respond) {
  auto body = body_of(request);
  auto intent = body ? parse_hash(body->value().string_or(http::kRelease["intent_hash"]))
                     : Result<Bytes>(fail(body.error()));
  if (!intent) return respond(refuse(intent.error()));
  service_.release(
      {request.caller.tenant, std::string(body->value().string_or(http::kRelease["world_id"]))},
      *intent);
  respond(wire::json_response(200, "{\"status\":\"released\"}"));
}

}  // namespace pawl::worlds

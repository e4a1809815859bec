#include "faces/worlds/grpc/convert.h"

#include "json/text.h"

namespace pawl::worlds {
namespace {

uint64_t number(const json::Value& v, std::string_view name) {
  const json::Value* n = v.find(name);
  return n ? n->as_uint64().value_or(0) : 0;
}

Bytes bytes(const json::Value& v, std::string_view name) {
  return unbase64(v.string_or(name)).value_or(Bytes());
}

void some(json::Object& out, std::string_view name, const std::string& text) {
  if (!text.empty()) out.add(std::string(name), text);
}

// The payload as the routes take it; `Message` has payload_cbor and payload_json.
template <class Message>
Result<void> add_payload(json::Object& out, const Message& in) {
  if (in.payload_case() != Message::kPayloadJson) {
    out.add("payload_cbor_b64",
            base64(in.payload_case() == Message::kPayloadCbor ? in.payload_cbor()
                                                              : std::string("\xf6")));
    return {};
  }
  TRY(json::Value payload, json::parse(in.payload_json()));
  out.add("payload", std::move(payload));
  return {};
}

void fill(v1::OpenEffect* out, const json::Value& v) {
  auto text = [&](std::string_view name) { return std::string(v.string_or(name)); };
  out->set_world_id(text("world_id"));
  out->set_intent_hash(text("intent_hash"));
  out->set_effect(text("effect"));
  out->set_effect_hash(text("effect_hash"));
  out->set_executor_module(text("executor_module"));
  out->set_executor_module_hash(text("executor_module_hash"));
  out->set_executor_entrypoint(text("executor_entrypoint"));
  out->set_origin_module_id(text("origin_module_id"));
  out->set_origin_workflow_hash(text("origin_workflow_hash"));
  if (v.find("origin_instance_key_b64"))
    out->set_origin_instance_key(bytes(v, "origin_instance_key_b64"));
  out->set_emitted_at_seq(number(v, "emitted_at_seq"));
  out->set_idempotency_key(bytes(v, "idempotency_key_b64"));
  out->set_requested_idempotency_key(bytes(v, "requested_idempotency_key_b64"));
  out->set_issuer_ref(text("issuer_ref"));
  out->set_leased_until_ns(static_cast<int64_t>(number(v, "leased_until_ns")));
  out->set_params_cbor(bytes(v, "params_cbor_b64"));
  if (const json::Value* params = v.find("params")) out->set_params_json(json::print(*params));
  if (const json::Value* error = v.find("error"))
    out->set_error(std::string(error->string_or("message")));
}

}  // namespace

Said say(const v1::PollEffects& in) {
  Said out{"/v1/effects/poll"};
  some(out.body, "worker", in.worker());
  json::Array effects;
  for (const std::string& effect : in.effects())
    effects.push_back(json::Value(effect));
  out.body.add("effects", json::Value(std::move(effects)));
  out.body.add("limit", uint64_t{std::max(in.limit(), 1u)});
  out.body.add("lease_ms", uint64_t{in.lease_ms() ? in.lease_ms() : kLeaseMs});
  out.body.add("wait_ms", uint64_t{in.wait_ms()});
  return out;
}

Said say(const v1::EffectName& in) {
  Said out{"/v1/effects/release"};
  out.body.add("world_id", in.world_id());
  out.body.add("intent_hash", in.intent_hash());
  return out;
}

Result<Said> say(const v1::EffectFrame& in) {
  Said out{"/v1/worlds/{id}/frames", in.world_id()};
  out.body.add("intent_hash", in.intent_hash());
  out.body.add("seq", in.seq());
  out.body.add("kind", in.kind());
  TRY_OK(add_payload(out.body, in));
  some(out.body, "payload_ref", in.payload_ref());
  if (!in.signature().empty()) out.body.add("signature_b64", base64(in.signature()));
  out.body.add("origin_module_id", in.origin_module_id());
  some(out.body, "origin_workflow_hash", in.origin_workflow_hash());
  if (in.has_origin_instance_key())
    out.body.add("origin_instance_key_b64", base64(in.origin_instance_key()));
  out.body.add("effect", in.effect());
  some(out.body, "effect_hash", in.effect_hash());
  some(out.body, "executor_module", in.executor_module());
  some(out.body, "executor_module_hash", in.executor_module_hash());
  some(out.body, "executor_entrypoint", in.executor_entrypoint());
  out.body.add("emitted_at_seq", in.emitted_at_seq());
  return out;
}

Result<Said> say(const v1::EffectReceipt& in) {
  Said out{"/v1/worlds/{id}/receipts", in.world_id()};
  out.body.add("intent_hash", in.intent_hash());
  out.body.add("status", in.status().empty() ? "ok" : in.status());
  TRY_OK(add_payload(out.body, in));
  if (in.has_cost_cents()) out.body.add("cost_cents", in.cost_cents());
  if (!in.signature().empty()) out.body.add("signature_b64", base64(in.signature()));
  return out;
}

Result<json::Value> heard(const wire::Response& response) {
  auto body = json::parse(response.body);
  if (response.status < 400 && body) return body;
  static constexpr struct {
    int status;
    Code code;
  } kCodes[] = {{400, Code::invalid},       {401, Code::unauthenticated}, {403, Code::denied},
                {404, Code::not_found},     {409, Code::conflict},        {413, Code::too_large},
                {422, Code::unprocessable}, {501, Code::unsupported},     {503, Code::unavailable}};
  Error error{Code::internal, "internal_error", "the answer cannot be read"};
  for (const auto& row : kCodes)
    if (row.status == response.status) error.code = row.code;
  if (body) error.reason = body->string_or("code"), error.message = body->string_or("message");
  return fail(std::move(error));
}

grpc::Status status_of(const Error& error) {
  static constexpr struct {
    Code code;
    grpc::StatusCode status;
  } kCodes[] = {
      {Code::invalid, grpc::INVALID_ARGUMENT},       {Code::unauthenticated, grpc::UNAUTHENTICATED},
      {Code::denied, grpc::PERMISSION_DENIED},       {Code::not_found, grpc::NOT_FOUND},
      {Code::conflict, grpc::FAILED_PRECONDITION},   {Code::too_large, grpc::RESOURCE_EXHAUSTED},
      {Code::unprocessable, grpc::INVALID_ARGUMENT}, {Code::unsupported, grpc::UNIMPLEMENTED},
      {Code::unavailable, grpc::UNAVAILABLE},        {Code::exhausted, grpc::UNAVAILABLE}};
  for (const auto& row : kCodes)
    if (row.code == error.code) return {row.status, error.message, error.reason};
  return {grpc::INTERNAL, error.message, error.reason};
}

void fill(v1::OpenWork* out, const json::Value& answer) {
  const json::Value* work = answer.find("work");
  if (!work || !work->is_array()) return;
  for (const json::Value& item : work->array())
    fill(out->add_work(), item);
}

}  // namespace pawl::worlds

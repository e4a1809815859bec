#include "faces/worlds/grpc/convert.h"

#include "faces/worlds/air/normalize.h"
#include "json/text.h"
#include "wire/status.h"

namespace pawl::worlds {
namespace {

// `Message` has payload_cbor and payload_json. Without either the payload is null.
template <class Message>
Result<GivenValue> payload_of(const Message& in) {
  if (in.payload_case() == Message::kPayloadJson) {
    TRY(json::Value payload, json::parse(in.payload_json()));
    return GivenValue{{}, std::move(payload)};
  }
  if (in.payload_case() == Message::kPayloadCbor) return GivenValue{in.payload_cbor(), {}};
  return GivenValue{cbor::encode(cbor::Value()), {}};
}

Bytes signature_of(const std::string& given) { return given.empty() ? no_signature() : given; }

void fill(v1::OpenEffect* out, const OpenWork& work) {
  const PendingIntent& intent = work.intent;
  out->set_world_id(work.world);
  out->set_intent_hash(hash_text(intent.intent));
  out->set_effect(intent.identity.effect);
  out->set_effect_hash(intent.identity.effect_hash);
  out->set_executor_module(intent.identity.executor_module);
  out->set_executor_module_hash(intent.identity.executor_module_hash);
  out->set_executor_entrypoint(intent.identity.executor_entrypoint);
  out->set_origin_module_id(intent.workflow);
  out->set_origin_workflow_hash(intent.workflow_hash);
  if (intent.keyed) out->set_origin_instance_key(intent.key);
  out->set_emitted_at_seq(intent.emitted_at_seq);
  out->set_idempotency_key(intent.idempotency_key);
  out->set_requested_idempotency_key(intent.requested_key);
  out->set_issuer_ref(intent.issuer_ref.value_or(std::string()));
  out->set_leased_until_ns(work.leased_until);
  // A secret that cannot be resolved: the executor gets the reason and can settle the intent with
  // it.
  if (!work.params) {
    out->set_error(work.params.error().message);
    return;
  }
  // Both forms; JSON shows bytes as base64.
  out->set_params_cbor(cbor::canonical(*work.params));
  out->set_params_json(json::print(plain_json(*work.params)));
}

}  // namespace

WorkRequest work_request(const v1::PollEffects& in) {
  return {.worker = in.worker(),
          .effects = {in.effects().begin(), in.effects().end()},
          .limit = std::max(in.limit(), 1u),
          .lease_ms = in.lease_ms() ? in.lease_ms() : kDefaultLeaseMs,
          .wait_ms = in.wait_ms()};
}

Result<StreamFrame> stream_frame(const v1::EffectFrame& in) {
  TRY(GivenValue payload, payload_of(in));
  StreamFrame out;
  TRY(out.intent, parse_intent(in.intent_hash()));
  out.origin_module_id = in.origin_module_id();
  out.origin_workflow_hash = in.origin_workflow_hash();
  if (in.has_origin_instance_key()) out.origin_instance_key = in.origin_instance_key();
  out.identity = {in.effect(), in.effect_hash(), in.executor_module(), in.executor_module_hash(),
                  in.executor_entrypoint()};
  out.emitted_at_seq = in.emitted_at_seq();
  out.seq = in.seq();
  out.kind = in.kind();
  out.payload = frame_payload(payload);
  out.payload_ref = in.payload_ref();
  out.signature = signature_of(in.signature());
  TRY_OK(check_payload_ref(out));
  return out;
}

Result<GivenReceipt> given_receipt(const v1::EffectReceipt& in) {
  GivenReceipt out;
  TRY(out.payload, payload_of(in));
  out.receipt.status = in.status().empty() ? "ok" : in.status();
  if (in.has_cost_cents()) out.receipt.cost_cents = in.cost_cents();
  out.receipt.signature = signature_of(in.signature());
  return out;
}

v1::OpenWork open_work_message(const std::vector<OpenWork>& work) {
  v1::OpenWork out;
  for (const OpenWork& item : work)
    fill(out.add_work(), item);
  return out;
}

// Three codes differ from the shared table, because executors have read them so from the beginning:
// a value that does not fit is an invalid argument, a world that is busy is unavailable for a
// moment, and damaged data is an internal error.
grpc::Status status_of(const Error& error) {
  auto status = [&](grpc::StatusCode code) {
    return grpc::Status(code, error.message, error.reason);
  };
  switch (error.code) {
    case Code::unprocessable: return status(grpc::INVALID_ARGUMENT);
    case Code::exhausted: return status(grpc::UNAVAILABLE);
    case Code::corrupt: return status(grpc::INTERNAL);
    default: return status(static_cast<grpc::StatusCode>(wire::code_status(error.code).grpc));
  }
}

}  // namespace pawl::worlds

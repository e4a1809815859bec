#include "faces/worlds/step/ingress.h"

namespace pawl::worlds {

using cbor::Value;

std::unexpected<Error> unknown_receipt(BytesView intent) {
  return fail(Code::not_found, kUnknownReceipt, "unknown effect receipt for " + hash_text(intent));
}

Result<AcceptedEvent> Ingress::accept_event(Event event) {
  TRY_OK(turn_.refuse_while_busy());
  TRY(PreparedEvent prepared, router_.prepare(std::move(event)));
  TRY(AcceptedEvent accepted, router_.admit(std::move(prepared)));
  TRY_OK(stepper_.drain());
  return accepted;
}

Result<void> Ingress::accept_receipt(IntentReceipt receipt) {
  TRY_OK(turn_.refuse_while_busy());
  TRY(auto stored, turn_.pending(receipt.intent));
  if (!stored) return unknown_receipt(receipt.intent);
  if (receipt.status != "ok" && receipt.status != "error" && receipt.status != "timeout")
    return fail(Code::invalid, "receipt.decode",
                "receipt status '" + receipt.status + "' is none of ok, error, timeout");
  TRY_OK(settlement_.settle(*stored, std::move(receipt)));
  return stepper_.drain();
}

Result<bool> Ingress::accept_frame(const StreamFrame& frame) {
  TRY_OK(turn_.refuse_while_busy());
  TRY(bool taken, frames_.take(frame));
  if (taken) TRY_OK(stepper_.drain());
  return taken;
}

// The clock's receipt. A timer that was dropped meanwhile is ignored.
Result<void> Ingress::fire_timer(BytesView intent) {
  TRY_OK(turn_.refuse_while_busy());
  TRY(auto timer, turn_.pending(intent));
  if (!timer) return {};
  TRY(Value params, cbor::decode(timer->params));
  const Value* due = params.find("deliver_at_ns");
  const Value* key = params.find("key");
  const uint64_t at =
      std::max(static_cast<uint64_t>(turn_.kernel.now()), due ? due->as_uint64().value_or(0) : 0);
  IntentReceipt receipt;
  receipt.intent = intent;
  receipt.status = "ok";
  receipt.payload =
      cbor::canonical(cbor::Map{{"delivered_at_ns", at}, {"key", key ? *key : Value()}});
  receipt.signature = no_signature();
  return accept_receipt(std::move(receipt));
}

}  // namespace pawl::worlds

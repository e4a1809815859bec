#include "kernel/delivery.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "kernel/once.h"

namespace pawl {

static constexpr std::string_view kGotPrefix{"~got\0", 5};
static constexpr std::string_view kGotBelowPrefix{"~got-below\0", 11};
static constexpr std::string_view kSentPrefix{"~sent\0", 6};

// A message longer than this is cut in a receipt, and a detail longer than this is left out.
static constexpr size_t kRefusalTextBytes = 4096;

bool is_refusal(const Error& error) {
  if (error.retryable) return false;
  switch (error.code) {
    case Code::exhausted:
    case Code::unavailable:
    case Code::corrupt:
    case Code::internal: return false;
    default: return true;
  }
}

Bytes encode_refusal(const Error& error) {
  Bytes out;
  Writer w(out);
  w.str(name_of(error.code));
  w.str(error.reason);
  w.str(BytesView(error.message).substr(0, kRefusalTextBytes));
  w.str(error.detail.size() > kRefusalTextBytes ? BytesView() : BytesView(error.detail));
  return out;
}

Result<Error> decode_refusal(BytesView bytes) {
  Reader r(bytes);
  const BytesView code = r.str();
  Error error;
  error.reason = r.str();
  error.message = r.str();
  error.detail = r.str();
  for (int i = 0; i <= static_cast<int>(Code::internal); ++i) {
    error.code = static_cast<Code>(i);
    if (name_of(error.code) == code && r.done()) return error;
  }
  return fail(Code::corrupt, "BAD_REFUSAL", "the refusal of a delivery does not decode");
}

Bytes encode(const DeliveryReceipt& receipt) {
  Bytes out;
  Writer w(out);
  w.boolean(receipt.refusal.has_value());
  w.str(receipt.refusal ? encode_refusal(*receipt.refusal) : receipt.answer);
  return out;
}

Result<DeliveryReceipt> decode_delivery_receipt(BytesView bytes) {
  Reader r(bytes);
  const bool refused = r.boolean();
  const BytesView body = r.str();
  if (!r.done())
    return fail(Code::corrupt, "BAD_RECEIPT", "the receipt of a delivery does not decode");
  if (!refused) return DeliveryReceipt{{}, Bytes(body)};
  TRY(Error refusal, decode_refusal(body));
  return DeliveryReceipt{std::move(refusal), {}};
}

Effect effect_to_shard(std::string id, std::string program, uint32_t shard, std::string verb,
                       Bytes body, const Caller& caller) {
  Effect effect;
  effect.id = std::move(id);
  effect.to = To::shard;
  effect.program = program;
  effect.tenant = caller.tenant;
  effect.queue = std::move(verb);
  effect.body = std::move(body);
  effect.address = std::make_shared<const Effect::Address>(
      Effect::Address{shard, std::move(program), caller.user, caller.roles});
  return effect;
}

Input delivery_of(const Effect& effect, uint32_t source, uint64_t below) {
  const Effect::Address& to = *effect.address;
  Input input;
  input.program = to.program;
  input.verb = effect.queue;
  input.body = effect.body;
  input.caller = {effect.tenant, to.user, to.roles};
  input.delivery = std::make_shared<const Delivery>(Delivery{source, to.number, below, effect.id});
  return input;
}

Input forget_delivered(uint32_t source, uint64_t below) {
  Input input;
  input.program = kOwnProgram;
  input.verb = kForgetDelivered;
  input.caller.user = "~kernel";
  input.delivery = std::make_shared<const Delivery>(Delivery{source, 0, below, {}});
  return input;
}

Bytes encode_delivery(const Input& input) {
  Bytes out;
  Writer w(out);
  w.u8(1);
  w.str(input.program);
  w.str(input.verb);
  w.str(input.body);
  w.str(input.caller.tenant);
  w.str(input.caller.user);
  w.str(input.caller.roles);
  w.uint(input.delivery->source);
  w.uint(input.delivery->number);
  w.uint(input.delivery->below);
  w.str(input.delivery->effect);
  return out;
}

Result<Input> decode_delivery(BytesView bytes) {
  Reader r(bytes);
  const uint8_t version = r.u8();
  Input input;
  input.program = r.str();
  input.verb = r.str();
  input.body = r.str();
  input.caller.tenant = r.str();
  input.caller.user = r.str();
  input.caller.roles = r.str();
  Delivery delivery;
  delivery.source = static_cast<uint32_t>(r.uint());
  delivery.number = r.uint();
  delivery.below = r.uint();
  delivery.effect = r.str();
  if (version != 1 || !r.done())
    return fail(Code::invalid, "BAD_DELIVERY",
                "a delivery of another node does not decode: all nodes must run versions of pawl "
                "that know each other");
  input.delivery = std::make_shared<const Delivery>(std::move(delivery));
  return input;
}

Bytes encode(const DeliveryMark& mark) {
  Bytes out;
  Writer w(out);
  w.str(mark.effect);
  w.str(mark.receipt);
  return out;
}

Result<DeliveryMark> decode_delivery_mark(BytesView bytes) {
  Reader r(bytes);
  DeliveryMark mark;
  mark.effect = r.str();
  mark.receipt = r.str();
  if (!r.done()) return fail(Code::corrupt, "BAD_MARK", "the mark of a delivery does not decode");
  return mark;
}

Key got_key(uint32_t source, uint64_t number) {
  return Key(kGotPrefix).append(ordered64(source)).append(ordered64(number));
}
Key got_below_key(uint32_t source) { return Key(kGotBelowPrefix).append(ordered64(source)); }
Key sent_key(uint32_t target) { return Key(kSentPrefix).append(ordered64(target)); }

Bytes encode_number(uint64_t number) {
  Bytes out;
  Writer(out).uint(number);
  return out;
}

Result<uint64_t> decode_number(const Cell& cell) {
  if (!cell.exists()) return 0;
  Reader r(cell.value());
  const uint64_t number = r.uint();
  if (!r.done()) return fail(Code::corrupt, "BAD_NUMBER", "the number in a cell does not decode");
  return number;
}

Result<uint64_t> forget_marks(Turn& turn, uint32_t source, uint64_t below) {
  static constexpr uint64_t kAtOnce = 500;
  const Key key = got_below_key(source);
  TRY(Cell cell, turn.read(key));
  TRY(uint64_t stored, decode_number(cell));
  const uint64_t from = std::max<uint64_t>(stored, 1);
  if (below <= from) return 0;
  const uint64_t to = std::min(below, from + kAtOnce);
  for (uint64_t number = from; number < to; ++number)
    turn.erase(got_key(source, number));
  turn.write(key, encode_number(to));
  return below - to;
}

}  // namespace pawl

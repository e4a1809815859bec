// Effects between shards, in the kernel of the source and of the target. See kernel/delivery.h.

#include <fmt/format.h>

#include "base/limits.h"
#include "kernel/delivery.h"
#include "kernel/open_turn.h"

namespace pawl {

bool Kernel::leaves_mark(const Input& input) {
  return input.delivery && input.delivery->number != 0;
}

bool Kernel::delivered_before(const Input& input, Reply& reply) {
  if (!leaves_mark(input)) return false;
  const Delivery& delivery = *input.delivery;
  const Key key = got_key(delivery.source, delivery.number);
  if (running_once_.contains(key)) {
    answer(std::move(reply), fail(Error{Code::conflict,
                                        "DELIVERY_RUNNING",
                                        "an earlier delivery of this effect still runs",
                                        {},
                                        true}));
    return true;
  }
  auto decided = [&]() -> Result<std::optional<Answer>> {
    TRY(Cell cell, current(key));
    if (!cell.exists()) {
      TRY(Cell below, current(got_below_key(delivery.source)));
      TRY(uint64_t forgotten, decode_number(below));
      if (delivery.number >= forgotten) return std::optional<Answer>();
      return fail(Code::precondition, kDeliveryForgotten,
                  fmt::format("effect {} of shard {} was settled long ago", delivery.number,
                              delivery.source));
    }
    TRY(DeliveryMark mark, decode_delivery_mark(cell.value()));
    if (mark.effect != delivery.effect)
      return fail(
          Code::corrupt, kDeliveryNumberReused,
          fmt::format("effect {} of shard {} is '{}' here and '{}' there: the journal of "
                      "that shard has lost frames. {}",
                      delivery.number, delivery.source, mark.effect, delivery.effect, kLossRemedy));
    return std::optional(Answer{std::move(mark.receipt), cell.version});
  }();
  if (decided && !*decided) return false;
  if (decided)
    answer(std::move(reply), std::move(**decided));
  else
    answer(std::move(reply), fail(std::move(decided.error())));
  return true;
}

// A refusal is decided for good, so it gets a frame too, with the mark alone: a delivery that was
// sent twice must not be refused first and done later.
void Kernel::close_delivery(OpenTurn& t, Result<Bytes> result) {
  Reply reply = std::move(t.strands.front().reply);
  if (result && result->size() > limits::kReceiptBytes)
    result = fail(Code::too_large, "RECEIPT_TOO_LARGE",
                  fmt::format("the answer to another shard has {} bytes, over the limit of {}",
                              result->size(), limits::kReceiptBytes));
  if (result) {
    const std::vector<std::string> withdrawn = withdrawn_by(t);
    const Bytes receipt = encode(DeliveryReceipt{t.turn.refusal_, std::move(*result)});
    Result<Answer> outcome = commit(t, receipt);
    if (outcome || !is_refusal(outcome.error())) {
      answer_waiting(t, outcome, withdrawn);
      return answer(std::move(reply), std::move(outcome));
    }
    result = fail(std::move(outcome.error()));
  }
  if (!is_refusal(result.error())) return answer(std::move(reply), fail(std::move(result.error())));
  t.turn.rewind({0, 0});
  t.stale_reads.clear();
  answer(std::move(reply), commit(t, encode(DeliveryReceipt{std::move(result.error()), {}})));
}

Result<void> Kernel::record_mark(OpenTurn& t, const Bytes& receipt) {
  if (!leaves_mark(t.inputs.front())) return {};
  const Delivery& delivery = *t.inputs.front().delivery;
  t.turn.write(got_key(delivery.source, delivery.number),
               encode(DeliveryMark{delivery.effect, receipt}));
  TRY_OK(forget_marks(t.turn, delivery.source, std::min(delivery.below, delivery.number)));
  return {};
}

Result<void> Kernel::number_effects(OpenTurn& t) {
  Turn& turn = t.turn;
  std::map<uint32_t, uint64_t> numbers;  // by target
  for (size_t i = 0; i < turn.ops_.size(); ++i) {
    Turn::Op& op = turn.ops_[i];
    if (!op.effect || !op.value || op.effect->to != To::shard) continue;
    if (turn.newest_.find(op.key) != i) continue;
    Effect effect = *op.effect;
    Effect::Address address = *effect.address;
    auto [number, first] = numbers.try_emplace(address.shard, 0);
    if (first) {
      TRY(Cell cell, turn.read(sent_key(address.shard)));
      TRY(number->second, decode_number(cell));
    }
    address.number = ++number->second;
    effect.address = std::make_shared<const Effect::Address>(std::move(address));
    op.effect = std::make_shared<const Effect>(std::move(effect));
    op.value = std::make_shared<const Stored>(encode(*op.effect), op.effect);
  }
  for (const auto& [target, number] : numbers)
    turn.write(sent_key(target), encode_number(number));
  return {};
}

}  // namespace pawl

#pragma once
// A delivery is an effect on its way to another shard (To::shard). The target runs it as an input
// of its own and, in the same frame, writes a mark with the receipt. A second delivery of the same
// effect finds the mark, changes nothing and gets the same receipt.
//
// The source counts its effects to each target: 1, 2, 3 and so on. Each delivery says below which
// number the source has settled everything; the target forgets those marks and refuses deliveries
// that arrive later still. No order of deliveries is promised.

#include <optional>
#include <string>

#include "kernel/input.h"
#include "kernel/turn.h"

namespace pawl {

struct Delivery {
  uint32_t source = 0;  // the shard that opened the effect
  // Number of the effect. 0: there is no effect; the target only forgets marks.
  uint64_t number = 0;
  uint64_t below = 0;    // effects of the source to this target with a lower number are settled
  std::string effect{};  // id of the effect
};

// What the target has decided. A delivery is answered with these bytes (Answer::body). An error
// instead means that the target has not decided: the delivery must be repeated.
struct DeliveryReceipt {
  std::optional<Error> refusal{};
  Bytes answer{};  // of the program, when it did not refuse
};
Bytes encode(const DeliveryReceipt& receipt);
Result<DeliveryReceipt> decode_delivery_receipt(BytesView bytes);

// The receipt reaches the program that opened the effect as an input that settles it, with one of
// these verbs. The body is the answer, or the refusal for decode_refusal().
inline constexpr std::string_view kDelivered = "delivered";
inline constexpr std::string_view kRefused = "refused";
Bytes encode_refusal(const Error& error);
Result<Error> decode_refusal(BytesView bytes);

// Whether an error of the target is a receipt. Other errors may pass: the delivery is repeated.
bool is_refusal(const Error& error);

// The source has settled the effect long ago, or its journal has lost frames.
inline constexpr Reason kDeliveryForgotten{"DELIVERY_FORGOTTEN"};
// Another effect of the source has this number: the journal of the source has lost frames.
inline constexpr Reason kDeliveryNumberReused{"DELIVERY_NUMBER_REUSED"};

// Makes an effect whose receipt comes back to `program`. At the target, the program of the same
// name runs `verb`; set Effect::address for another one. `caller` is the target's caller.
Effect effect_to_shard(std::string id, std::string program, uint32_t shard, std::string verb,
                       Bytes body, const Caller& caller);
// The input that the target gets. `below` is as in Delivery.
Input delivery_of(const Effect& effect, uint32_t source, uint64_t below);
// The input that only makes the target forget marks. It answers with the count of numbers below
// `below` that are left for another such input.
Input forget_delivered(uint32_t source, uint64_t below);
inline constexpr std::string_view kForgetDelivered = "forget delivered";

// The bytes of a delivery between two nodes.
Bytes encode_delivery(const Input& input);
Result<Input> decode_delivery(BytesView bytes);

// Cells of the kernel: the mark of a delivery, the number below which a target has forgotten its
// marks, and the last number that a source gave to an effect.
struct DeliveryMark {
  std::string effect;
  Bytes receipt;  // encoded DeliveryReceipt
};
Bytes encode(const DeliveryMark& mark);
Result<DeliveryMark> decode_delivery_mark(BytesView bytes);
Key got_key(uint32_t source, uint64_t number);
Key got_below_key(uint32_t source);
Key sent_key(uint32_t target);
Bytes encode_number(uint64_t number);
Result<uint64_t> decode_number(const Cell& cell);  // 0 when the cell does not exist

// Erases marks of the source below `below`, some hundreds in one turn. Returns how many numbers are
// left.
Result<uint64_t> forget_marks(Turn& turn, uint32_t source, uint64_t below);

}  // namespace pawl

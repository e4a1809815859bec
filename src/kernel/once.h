#pragma once
// A request with an Idempotency-Key runs once. Its answer is kept for a day in a cell that is
// written in the same frame as its changes. While its answer waits for an effect
// (Turn::answer_later), the cell names the effect instead, and the effect carries the cell's key:
// the turn that settles the effect writes the answer, or erases the cell when it refuses.

#include "kernel/program.h"

namespace pawl {

struct Once {
  Bytes hash;  // hash of the request: a different request with the same key is refused
  Time at;
  Bytes answer;
  std::string waits_for{};  // id of the effect that decides the answer; empty: `answer` is it
};
Bytes encode(const Once& once);
Result<Once> decode_once(BytesView bytes);
Key once_key(const Caller& caller, std::string_view key);
Bytes once_hash(const Input& input);

// The kernel's own program. Its verb `forget` erases answers that are more than a day old, some
// thousands in one turn, and answers with the number erased. Its verb `forget delivered` erases
// marks of deliveries (delivery.h). Its verb `claim` records who owns the shard from now on: it is
// the first frame of a new owner.
inline constexpr std::string_view kOwnProgram = "~";
inline constexpr std::string_view kForget = "forget";
inline constexpr std::string_view kClaimVerb = "claim";
inline constexpr std::string_view kOwnerKey{"~owner", 6};
// The owner that the newest claim frame names.
struct ShardClaim {
  uint64_t epoch = 0;
  std::string node{};
};
Bytes encode(const ShardClaim& claim);
Result<ShardClaim> decode_shard_claim(BytesView bytes);

class OwnProgram final : public Program {
 public:
  std::string_view name() const override { return kOwnProgram; }
  Result<Bytes> run(Turn& turn, const Input& input) const override;
};

}  // namespace pawl

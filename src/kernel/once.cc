#include "kernel/once.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/limits.h"
#include "kernel/delivery.h"

namespace pawl {

static constexpr std::string_view kOncePrefix{"~once\0", 6};

Bytes encode(const Once& once) {
  Bytes out;
  Writer w(out);
  w.str(once.hash);
  w.sint(once.at);
  w.str(once.answer);
  if (!once.waits_for.empty()) w.str(once.waits_for);
  return out;
}

Result<Once> decode_once(BytesView bytes) {
  Reader r(bytes);
  Once once;
  once.hash = r.str();
  once.at = r.sint();
  once.answer = r.str();
  if (r.ok() && !r.done()) once.waits_for = r.str();
  if (!r.done()) return fail(Code::corrupt, "BAD_ONCE", "a remembered answer does not decode");
  return once;
}

Key once_key(const Caller& caller, std::string_view key) {
  return Key(kOncePrefix).append(pawl::key({caller.tenant, key}));
}

Bytes once_hash(const Input& input) {
  Bytes head;
  Writer w(head);
  w.str(input.program);
  w.str(input.verb);
  return Bytes(view(sha256(head, input.body)));
}

Bytes encode(const ShardClaim& claim) {
  Bytes out;
  Writer w(out);
  w.uint(claim.epoch);
  w.str(claim.node);
  return out;
}

Result<ShardClaim> decode_shard_claim(BytesView bytes) {
  Reader r(bytes);
  ShardClaim claim;
  claim.epoch = r.uint();
  claim.node = r.str();
  if (!r.done()) return fail(Code::corrupt, "BAD_CLAIM", "the owner of the shard does not decode");
  return claim;
}

Result<Bytes> OwnProgram::run(Turn& turn, const Input& input) const {
  if (input.verb == kClaimVerb) {
    TRY_OK(decode_shard_claim(input.body));
    turn.write(kOwnerKey, input.body);
    return Bytes();
  }
  if (input.verb == kForgetDelivered && input.delivery) {
    TRY(uint64_t left, forget_marks(turn, input.delivery->source, input.delivery->below));
    return std::to_string(left);
  }
  if (input.verb != kForget)
    return fail(Code::invalid, "UNKNOWN_VERB",
                fmt::format("the kernel's own program has no verb '{}'", input.verb));
  static constexpr size_t kAtOnce = 5000;
  std::vector<Key> old;
  Time limit = turn.now() - limits::kIdempotencySeconds * kSecond;
  TRY_OK(turn.scan(kOncePrefix, [&](BytesView key, const Cell& cell) {
    auto once = decode_once(cell.value());
    if (!once || once->at < limit) old.emplace_back(key);
    return old.size() < kAtOnce;
  }));
  for (const Key& key : old)
    turn.erase(key);
  return std::to_string(old.size());
}

}  // namespace pawl

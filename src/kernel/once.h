#pragma once
// A request with an Idempotency-Key runs once: its answer is kept as a cell for a day, written in
// the same frame as what it did.

#include "kernel/program.h"

namespace pawl {

struct Once {
  Bytes hash;  // of the request, so that another one under the same key is refused
  Time at;
  Bytes answer;
};
Bytes encode(const Once& once);
Result<Once> decode_once(BytesView bytes);
Key once_key(const Caller& caller, std::string_view key);
Bytes once_hash(const Input& input);

// The kernel's own program: its verb `forget` erases answers that are over a day old, some
// thousands a turn; the answer is the number erased.
inline constexpr std::string_view kOwnProgram = "~";
inline constexpr std::string_view kForget = "forget";

class OwnProgram final : public Program {
 public:
  std::string_view name() const override { return kOwnProgram; }
  Result<Bytes> run(Turn& turn, const Input& input) const override;
};

}  // namespace pawl

#pragma once
// The ledger is the simulator's program: accounts that hold money, transfers that must conserve it,
// and one verb for each thing that a turn can do. A lost or repeated step shows as missing or extra
// money.

#include "kernel/program.h"

namespace pawl::sim {

inline constexpr int64_t kOpening = 1000;

class Ledger final : public Program {
 public:
  std::string_view name() const override { return "ledger"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override;
  void view(const Committed& frame, ViewRows& rows) const override;
  bool keeps_history(BytesView key) const override;
};

// Cells: "ledger\0account\0NAME" -> amount, "ledger\0settled\0EFFECT" -> how many receipts counted.
Key account(std::string_view name);
Key settled(std::string_view effect);

}  // namespace pawl::sim

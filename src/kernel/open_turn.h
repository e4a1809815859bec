#pragma once
// The kernel's own state of an open turn. Only the files of Kernel include it.

#include "kernel/kernel.h"

namespace pawl {

struct Kernel::Strand {
  Caller caller;
  std::string once;  // Idempotency-Key of the strand's first input
  Bytes once_hash;
  Key running;  // entry of running_once_; empty for none
  Reply reply;
  std::shared_ptr<void> scratch;
  Turn::Mark mark{};
  std::unordered_set<std::string> asked;
  uint32_t number = 0;
  bool main() const { return number == 0; }
};

struct Kernel::OpenTurn {
  explicit OpenTurn(const CellReader& cells) : turn(cells), strands(1) {}
  Turn turn;
  const Program* program = nullptr;
  std::vector<Input> inputs;
  std::list<Strand> strands;  // the first is the main one
  EffectPtr settled;          // the open effect whose receipt began this turn
  bool waited = false;        // other turns may have run since this one began
  bool once_waits = false;    // see Frame
  std::vector<Frame::StaleRead> stale_reads;

  void reset() {
    turn.reset();
    inputs.clear();
    strands.resize(1);
    strands.front() = {};
    settled.reset();
    waited = once_waits = false;
    stale_reads.clear();
  }
};

}  // namespace pawl

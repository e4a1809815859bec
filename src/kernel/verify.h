#pragma once
// Verify audits a journal: it checks every link, runs the inputs of every frame through its program
// again, and compares the resulting bytes with the recorded ones.

#include "kernel/replay.h"

namespace pawl {

struct Verified {
  size_t frames = 0;  // frames whose link was checked
  size_t rerun = 0;   // frames that were run again
  std::map<std::string, size_t> by_program{};
  // Describes the first frame whose result differs; empty when none does.
  std::string difference{};
  Seq different_at = 0;
};

// `scratch` must be empty. Afterwards it holds the journal's cells without views.
Result<Verified> verify(const Journal& journal, Rows& scratch,
                        std::span<const Program* const> programs, const Progress& progress = {});

}  // namespace pawl

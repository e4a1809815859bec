#pragma once
// Verify proves that nothing was invented: it walks the whole journal, checks every link, runs
// every frame's inputs through its program again and compares the bytes.

#include "kernel/replay.h"

namespace pawl {

struct Verified {
  size_t frames = 0;  // links and bytes checked
  size_t rerun = 0;   // of them, run again
  std::map<std::string, size_t> by_program{};
  // The first frame that came out differently, told for a person; empty when none did.
  std::string difference{};
  Seq different_at = 0;
};

// `scratch` must be empty rows; they end with the cells of the journal, without views.
Result<Verified> verify(const Journal& journal, Rows& scratch,
                        std::span<const Program* const> programs, const Progress& progress = {});

}  // namespace pawl

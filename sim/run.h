#pragma once
// One simulated life from a seed, and the promises that must hold through it.

#include <string>
#include <vector>

#include "base/hash.h"

namespace pawl::sim {

struct Outcome {
  std::vector<std::string> broken;  // promises, told for a person; empty when all held
  Digest link{};                    // of the last frame: the same seed gives the same
  uint64_t frames = 0, acknowledged = 0, settled = 0, crashes = 0, conflicts = 0;
};

Outcome run(uint64_t seed, size_t steps);

}  // namespace pawl::sim

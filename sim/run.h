#pragma once
// One simulated run from a seed, and the promises that must hold throughout:
//   - an acknowledged frame stays in the journal, unchanged;
//   - answers and effects leave after their frame is durable;
//   - replay of the journal gives the same rows as the run did;
//   - money is conserved, so no turn is half done;
//   - an effect is settled once;
//   - running every frame again gives the same bytes (verify).

#include <string>
#include <vector>

#include "base/hash.h"

namespace pawl::sim {

struct Outcome {
  std::vector<std::string> broken;  // broken promises, described for people; empty when all held
  Digest link{};                    // link of the last frame: the same for the same seed
  uint64_t frames = 0, acknowledged = 0, settled = 0, crashes = 0, conflicts = 0;
};

Outcome run(uint64_t seed, size_t steps);

}  // namespace pawl::sim

#pragma once
// One life from a seed: a world, its clients, a time with faults, a time without, and the promises
// that must have held.

#include <string>
#include <vector>

#include "sim/world.h"

namespace pawl::sim {

struct LifeOptions {
  uint64_t seed = 1;
  Mutation mutation = Mutation::none;
  FaultSet faults = FaultSet::all();
  // Bit n: client n of kClients takes part.
  unsigned clients = ~0u;
  Time time = 2 * 3600 * kSecond;  // with faults
  bool tell = false;
};

struct Outcome {
  std::vector<std::string> broken{};  // empty when every promise held
  std::vector<std::string> story{};
  Digest digest{};  // of everything that happened
  FaultCounts counts{};
  Coverage coverage{};
  Time simulated = 0;
  uint64_t frames = 0, answers = 0, steps = 0, lives = 0;
};

Outcome live(const LifeOptions& options);
size_t client_count();

}  // namespace pawl::sim

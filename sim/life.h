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
  // Of lives without gaps: the longest time with faults. 0: the seed chooses the kind of the life,
  // and one in two has gaps.
  Time time = 0;
  Time divisor = 1;  // a shrunk life is shorter by this
  bool tell = false;
  std::string wasm_cache{};  // see WorldOptions
  std::string token_key{};   // see WorldOptions; one life in three uses it, with two tenants
  bool without_worlds = false;
};

struct Outcome {
  std::vector<std::string> broken{};  // empty when every promise held
  std::vector<std::string> story{};
  Digest digest{};  // of everything that happened
  FaultCounts counts{};
  Coverage coverage{};
  ReachCounts reached{};
  bool has_tenants = false;
  Time simulated = 0, busy = 0;  // in all, and while clients did something
  bool has_gaps = false;
  uint64_t frames = 0, answers = 0, steps = 0, lives = 0;
};

Outcome live(const LifeOptions& options);
size_t client_count();
// Why the client of worlds takes no part: empty, or that Wasmtime is not installed.
std::string worlds_left_out();

}  // namespace pawl::sim

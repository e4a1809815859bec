// sim --seed N [--steps S]     runs one seed and prints its counts and broken promises
// sim --seeds A-B [--steps S]  runs many seeds twice: the same seed must give the same frames

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/bytes.h"
#include "sim/run.h"

using namespace pawl;

static int one(uint64_t seed, size_t steps) {
  sim::Outcome o = sim::run(seed, steps);
  std::printf(
      "seed %lu: %lu frames, %lu acknowledged, %lu settled, %lu conflicts, %lu crashes, link %s\n",
      seed, o.frames, o.acknowledged, o.settled, o.conflicts, o.crashes,
      hex(view(o.link)).substr(0, 16).c_str());
  for (const auto& what : o.broken)
    std::printf("  broken: %s\n", what.c_str());
  return o.broken.empty() ? 0 : 1;
}

static int many(uint64_t from, uint64_t to, size_t steps) {
  uint64_t failed = 0, frames = 0, crashes = 0, conflicts = 0;
  for (uint64_t seed = from; seed <= to; ++seed) {
    sim::Outcome a = sim::run(seed, steps), b = sim::run(seed, steps);
    frames += a.frames;
    crashes += a.crashes;
    conflicts += a.conflicts;
    if (a.link != b.link || a.frames != b.frames)
      a.broken.push_back("the same seed gave other frames");
    if (a.broken.empty()) continue;
    ++failed;
    std::printf("seed %lu: %s (repeat with: sim --seed %lu --steps %zu)\n", seed,
                a.broken[0].c_str(), seed, steps);
  }
  std::printf("%lu frames, %lu crashes, %lu conflicts\n%lu passed, %lu failed\n", frames, crashes,
              conflicts, to - from + 1 - failed, failed);
  return failed ? 1 : 0;
}

int main(int argc, char** argv) {
  uint64_t from = 1, to = 0;
  size_t steps = 2000;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--seed")) {
      from = std::strtoull(argv[i + 1], nullptr, 10);
      to = 0;
    } else if (!std::strcmp(argv[i], "--seeds")) {
      char* dash = nullptr;
      from = std::strtoull(argv[i + 1], &dash, 10);
      to = *dash == '-' ? std::strtoull(dash + 1, nullptr, 10) : from;
    } else if (!std::strcmp(argv[i], "--steps"))
      steps = std::strtoull(argv[i + 1], nullptr, 10);
    else {
      std::fprintf(stderr, "usage: sim --seed N | --seeds A-B [--steps S]\n");
      return 2;
    }
  }
  return to ? many(from, to, steps) : one(from, steps);
}

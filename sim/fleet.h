#pragma once
// The command line of the simulator: one seed, many seeds on all cores, the mutations, and the
// shrinking of a seed that fails.

namespace pawl::sim {

int run_fleet(int argc, char** argv);

}  // namespace pawl::sim

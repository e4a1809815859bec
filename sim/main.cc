// sim --seed N [--tell] [--mutation NAME]  runs one seed
// sim --seeds A-B [--minutes T]            runs many on all cores
// See sim --help.

#include "sim/fleet.h"

int main(int argc, char** argv) { return pawl::sim::run_fleet(argc, argv); }

#pragma once
// Durations of a definition: read here, checked with everything else.

#include "faces/processes/definition/definition.h"

namespace pawl::processes {

// Parses the text into `out`; `what` names it in the problem when it is no duration.
void set_duration(std::string_view text, const std::string& what, Duration& out,
                  Problems& problems);

}  // namespace pawl::processes

#pragma once
// Parses the durations of a definition: ISO 8601, such as PT30S or P7D. Shared by the reader of the
// document and the validator, which read durations at different places.

#include "faces/processes/definition/definition.h"

namespace pawl::processes {

// Parses the text into `out`. When it is not a duration, adds a problem that begins with `what`.
void set_duration(std::string_view text, const std::string& what, Duration& out,
                  Problems& problems);

}  // namespace pawl::processes

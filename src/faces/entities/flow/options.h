#pragma once
// Settings of the operator that apply to all workflows. A journal must be verified with the options
// that it was written with.

namespace pawl::entities {

struct ProgramOptions {
  int max_state_visits = 10;      // of one state in one cascade
  bool validate_results = false;  // documents that processors return must fit the model
};

}  // namespace pawl::entities

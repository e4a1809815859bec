#pragma once
// The members `compensation` of a step and `onFailure` of a definition.

#include "faces/processes/definition/definition.h"

namespace pawl::processes {

// {"jobType", "variables"?, "retryCount"?}
void read_compensation(const json::Value& v, Step& step, const std::string& where,
                       Problems& problems, Problems& broken);
// "fail" (the default) or "compensate".
bool read_on_failure(std::string_view text, Problems& broken);

}  // namespace pawl::processes

#pragma once
// The member `call` of a CALL step.

#include "faces/processes/definition/definition.h"

namespace pawl::processes {

// {"workflowId", "version"?, "wait"?, "variables"?, "outputs"?, "businessKey"?}
std::optional<Call> read_call(const json::Value& v, const std::string& where, Problems& problems,
                              Problems& broken);

}  // namespace pawl::processes

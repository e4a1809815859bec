#pragma once
// Shared by the operator routes: filters from queries and bodies, and tokens as JSON.

#include "faces/processes/service.h"
#include "wire/message.h"

namespace pawl::processes {

// status, definitionId, businessKey, step, startedFrom, startedTo, updatedFrom, updatedTo, paused,
// variable=path=value (a JSON value or plain text; may be repeated).
Result<InstanceFilter> filter_of_query(const wire::Request& request);
// The same names as members; "variables" is an object of path and value.
Result<InstanceFilter> filter_of_body(const json::Value& filter);

json::Value tokens_value(const Instance& instance, const Definition& definition);

}  // namespace pawl::processes

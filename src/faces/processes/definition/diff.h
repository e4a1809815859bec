#pragma once
// Lists the differences between two versions of a definition.

#include "faces/processes/definition/definition.h"

namespace pawl::processes {

// A list of {"path", "from"?, "to"?}. A step is named by its id: "/steps/charge/retryCount". A
// member that one version does not have is left out on that side. The order of the steps is one
// change with the path "/steps".
json::Array diff(const Definition& from, const Definition& to);

}  // namespace pawl::processes

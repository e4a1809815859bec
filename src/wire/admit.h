#pragma once
// The check at the door of a gRPC call: who calls, and whether that caller may call it. The server
// passes it to the faces, so that no face decides this for itself.

#include <functional>
#include <string_view>

#include "base/caller.h"
#include "base/result.h"

namespace pawl::wire {

// Takes the metadata `authorization` (empty when absent) and the name of the operation in the
// server's table: the full name of the method, "/pawl.v1.Workers/Work". Returns the caller, or
// Code::unauthenticated or Code::denied.
using Admit =
    std::function<Result<Caller>(std::string_view authorization, std::string_view operation)>;

}  // namespace pawl::wire

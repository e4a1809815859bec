#pragma once
// The store of a server, over its HTTP API. An update is a compare-and-swap by revision; after a
// conflict the manager runs the mutator again.

#include "faces/lifecycle/type/workflow_type.h"
#include "net/http_client.h"
#include "pawl/lifecycle/manager.h"

namespace pawl::lifecycle {

result<std::shared_ptr<store>> connect_remote_store(std::string_view address,
                                                    const remote_options& options);

// The error for an answer whose status is not 2xx.
error error_of(int status, std::string_view body);
// The instance for a state that the server sent as JSON.
result<instance> parse_state(const WorkflowType& type, const js::Value& state, revision rev);

}  // namespace pawl::lifecycle

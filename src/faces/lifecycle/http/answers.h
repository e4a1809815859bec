#pragma once
// The answers of the lifecycle routes: JSON bodies, and {"error": "<operation>: <text>"}.

#include "faces/lifecycle/read/reads.h"
#include "json/text.h"
#include "wire/message.h"

namespace pawl::lifecycle {

wire::Response error_response(int status, std::string text);
// The details of a 500 go to the log. All other refusals say what is wrong and what to do.
wire::Response refusal_response(std::string_view operation, const Error& error);
wire::Response json_answer(int status, const js::Value& body);

// Appends the state of an instance. Returns false, and appends nothing, when it does not fit its
// type.
bool append_instance(std::string& out, const WorkflowType& type, const FoundInstance& found);
// An array of states. Unreadable ones are left out and counted in the header X-Pawl-Skipped.
wire::Response states_response(
    const std::vector<std::pair<WorkflowTypePtr, const FoundInstance*>>& states, size_t skipped);
js::Value event_json(const transition_event& event);

// The decoded name and value pairs of a query, in order.
std::vector<std::pair<std::string, std::string>> query_pairs(std::string_view query);

}  // namespace pawl::lifecycle

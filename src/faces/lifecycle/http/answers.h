#pragma once
// The answers of the lifecycle routes: JSON bodies, and {"error": "<operation>: <text>"}.

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/read/reads.h"
#include "json/text.h"
#include "wire/body_reader.h"

namespace pawl::lifecycle {

// Bodies of the operator API are read as in the original API: the first JSON value counts, and
// member names match without regard to case.
inline constexpr wire::BodyRules kOperatorBody{.reason = "BAD_JSON",
                                               .lead = "invalid JSON body: ",
                                               .not_json = "invalid JSON body: ",
                                               .max_bytes = limits::kOperatorBodyBytes,
                                               .empty_is_object = false,
                                               .ignores_trailing = true,
                                               .ignores_name_case = true};
// Bodies of types, instances and rules as data.
inline constexpr wire::BodyRules kDataBody{.reason = "BAD_JSON",
                                           .lead = "invalid JSON body: ",
                                           .not_json = "invalid JSON body: ",
                                           .blank_is_empty = false};

wire::Response error_response(int status, std::string text);
// The details of a 500 go to the log. All other refusals say what is wrong and what to do.
wire::Response refusal_response(std::string_view operation, const Error& error);
// The refusal of a body: 400, or 413 for one that is too large. The original API names no
// operation.
wire::Response body_refusal(const Error& error, std::string_view operation = {});
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

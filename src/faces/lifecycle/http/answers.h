#pragma once
// How this face words its answers: {"error": "<operation>: <text>"} and JSON bodies.

#include "faces/lifecycle/read/reads.h"
#include "json/text.h"
#include "wire/message.h"

namespace pawl::lifecycle {

wire::Response error_response(int status, std::string text);
// 500s keep their detail for the log; everything else says what is wrong and what to do.
wire::Response refusal_response(std::string_view operation, const Error& error);
wire::Response json_answer(int status, const js::Value& body);

// The state of an instance; false when it does not fit its type.
bool append_instance(std::string& out, const Type& type, const Found& found);
// An array of states; unreadable ones are left out and counted in X-Pawl-Skipped.
wire::Response states_response(const std::vector<std::pair<TypePtr, const Found*>>& states,
                               size_t skipped);
js::Value event_json(const transition_event& event);

// Decoded pairs of a query, in order.
std::vector<std::pair<std::string, std::string>> query_pairs(std::string_view query);

}  // namespace pawl::lifecycle

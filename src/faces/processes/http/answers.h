#pragma once
// The answers of the processes routes: a line of JSON, or {"error","reason"} for a failure. And
// their request bodies: the first JSON value counts, the rest is ignored.

#include "faces/processes/service.h"
#include "wire/message.h"

namespace pawl::processes {

std::string_view error_word(Code code);  // "not-found", "bad-request"
wire::Response refusal(const Error& error);
wire::Response ok(int status, std::string json);
wire::Response no_content();

Submitter submitter_of(const wire::Request& request);

// The body as a JSON object. When `may_be_empty`, an empty body is {}.
Result<json::Value> body_object(const wire::Request& request, bool may_be_empty);

// Members of a body. Null counts as absent. A member of another type is refused by name.
Result<std::string> text_member(const json::Value& body, std::string_view name);
Result<int64_t> whole_member(const json::Value& body, std::string_view name, int64_t default_value);
Result<bool> flag_member(const json::Value& body, std::string_view name);
// Moves the member out of the body.
Result<VariablesPtr> variables_member(json::Value& body, std::string_view name);
Result<std::vector<std::string>> texts_member(const json::Value& body, std::string_view name);

// The command of a body with definitionId, definitionVersion, variables and businessKey.
Result<StartCommand> start_command(json::Value& body);

struct PageRequest {
  size_t page = 0, size = 20;
};
Result<PageRequest> page_of(const wire::Request& request);

// A callback that responds with the answer of the service.
Done reply_with(wire::Respond respond, int status);
// Runs `make` and responds with its text or its error.
template <class Make>
void respond_with(wire::Respond& respond, Make&& make) {
  Result<std::string> text = make();
  respond(text ? ok(200, std::move(*text)) : refusal(text.error()));
}

void append_job(std::string& out, const PolledJob& job, std::string_view worker);

}  // namespace pawl::processes

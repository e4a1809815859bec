#pragma once
// The answers of the processes routes: a line of JSON, or {"error","reason"} for a failure. And the
// rules of their request bodies: the first JSON value counts, the rest is ignored.

#include "faces/processes/http/shapes.h"
#include "faces/processes/service.h"
#include "wire/body_reader.h"

namespace pawl::processes {

std::string_view error_word(Code code);  // "not-found", "bad-request"
wire::Response refusal(const Error& error);
wire::Response ok(int status, std::string json);
wire::Response no_content();

Submitter submitter_of(const wire::Request& request);

// How bodies are read: a body that must be there, and one that may be empty.
inline constexpr wire::BodyRules kBody{.reason = "BAD_REQUEST",
                                       .empty_is_object = false,
                                       .null_is_object = true,  // some clients send it for {}
                                       .ignores_trailing = true};
inline constexpr wire::BodyRules kOptionalBody{
    .reason = "BAD_REQUEST", .null_is_object = true, .ignores_trailing = true};

// Moves the member "variables" out of the body.
Result<VariablesPtr> take_variables(wire::BodyReader& body);
// The command of a body with definitionId, definitionVersion, variables and businessKey.
Result<StartCommand> start_command(wire::BodyReader& body);

// 201, or 200 when the answer shows an instance that had the business key already.
int start_status(const Bytes& answer);

// A status by its name. Error: invalid BAD_STATUS.
Result<Status> status_of_filter(const std::string& name);

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

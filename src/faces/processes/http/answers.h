#pragma once
// How the processes face words its answers: {"error","reason"} for failures, a line of JSON for the
// rest; and how it reads bodies: the first JSON value counts, what follows it is ignored.

#include "faces/processes/service.h"
#include "wire/message.h"

namespace pawl::processes {

std::string_view error_word(Code code);  // "not-found", "bad-request"
wire::Response refusal(const Error& error);
wire::Response ok(int status, std::string json);
wire::Response no_content();

Asker asker_of(const wire::Request& request);

// The body as a JSON object; nothing at all reads as {} when `may_be_empty`.
Result<json::Value> body_object(const wire::Request& request, bool may_be_empty);

// Members of a body. Absent and null are the same; another type is an error naming the member.
Result<std::string> text_member(const json::Value& body, std::string_view name);
Result<int64_t> whole_member(const json::Value& body, std::string_view name, int64_t default_value);
Result<bool> flag_member(const json::Value& body, std::string_view name);
// Takes the member out of the body.
Result<VariablesPtr> variables_member(json::Value& body, std::string_view name);
Result<std::vector<std::string>> texts_member(const json::Value& body, std::string_view name);

struct PageWanted {
  size_t page = 0, size = 20;
};
Result<PageWanted> page_of(const wire::Request& request);

// Answers with what the service gave.
Done reply_with(wire::Respond respond, int status);
// Runs `make` and responds with its text or its error.
template <class Make>
void respond_with(wire::Respond& respond, Make&& make) {
  Result<std::string> text = make();
  respond(text ? ok(200, std::move(*text)) : refusal(text.error()));
}

void append_job(std::string& out, const PolledJob& job, std::string_view worker);

}  // namespace pawl::processes

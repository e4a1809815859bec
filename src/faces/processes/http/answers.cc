#include "faces/processes/http/answers.h"

#include "faces/processes/limits.h"
#include "json/text.h"
#include "wire/status.h"

namespace pawl::processes {

namespace {

// The contract's word for each code. `status` is 0 where wire::code_status has the same status.
struct ErrorWord {
  Code code;
  std::string_view word;
  int status = 0;
};
constexpr ErrorWord kErrorWords[] = {
    {Code::invalid, "bad-request"},
    {Code::unauthenticated, "unauthenticated"},
    {Code::denied, "forbidden"},
    {Code::not_found, "not-found"},
    {Code::conflict, "conflict"},
    {Code::precondition, "conflict", 409},
    {Code::too_large, "too-large"},
    {Code::unprocessable, "unprocessable"},
    {Code::unsupported, "unsupported-format", 415},
    {Code::exhausted, "too-many-requests"},
    {Code::unavailable, "unavailable"},
    {Code::corrupt, "internal-error"},
    {Code::internal, "internal-error"},
};

const ErrorWord& row_of(Code code) {
  return *std::find_if(std::begin(kErrorWords), std::end(kErrorWords),
                       [&](const ErrorWord& r) { return r.code == code; });
}

}  // namespace

std::string_view error_word(Code code) { return row_of(code).word; }

wire::Response refusal(const Error& error) {
  const ErrorWord& row = row_of(error.code);
  int status = row.status ? row.status : wire::code_status(error.code).http;
  std::string body = "{\"error\":";
  json::append_string(body, row.word);
  json::append_string(body += ",\"reason\":", error.message);
  wire::Response response = wire::json_response(status, body += "}\n");
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

wire::Response ok(int status, std::string json) {
  return wire::json_response(status, json += '\n');
}

wire::Response no_content() { return {.status = 204}; }

Submitter submitter_of(const wire::Request& request) {
  return {request.caller, std::string(request.header("Idempotency-Key"))};
}

Result<VariablesPtr> take_variables(wire::BodyReader& body) {
  TRY(json::Object variables, body.take_object(kStart["variables"]));
  return make_variables(std::move(variables));
}

Result<StartCommand> start_command(wire::BodyReader& body) {
  StartCommand c;
  TRY(c.definition_id, body.text(kStart["definitionId"]));
  TRY(int64_t version, body.integer(kStart["definitionVersion"]));
  if (version > INT32_MAX)
    return fail(Code::invalid, "BAD_VERSION",
                "definitionVersion must fit 32 bits (at most " + std::to_string(INT32_MAX) +
                    "), got " + std::to_string(version));
  c.version = static_cast<uint32_t>(std::max<int64_t>(version, 0));
  TRY(c.variables, take_variables(body));
  TRY(c.business_key, body.text(kStart["businessKey"]));
  if (const json::Value* given = body.find(kStart["priority"]); given && !given->is_null()) {
    TRY(int64_t priority, body.integer(kStart["priority"]));
    // Service::start() checks the range.
    priority = std::clamp<int64_t>(priority, INT32_MIN, INT32_MAX);
    c.priority = static_cast<int32_t>(priority);
  }
  if (const json::Value* given = body.find(kStart["fairnessKey"]); given && !given->is_null()) {
    TRY(c.fairness_key, body.text(kStart["fairnessKey"]));
  }
  return c;
}

int start_status(const Bytes& answer) { return answer.ends_with(kExistingEnd) ? 200 : 201; }

Result<Status> status_of_filter(const std::string& name) {
  if (auto status = find_status(name)) return *status;
  return fail(
      Code::invalid, "BAD_STATUS",
      "status must be ACTIVE, WAITING, COMPLETED, FAILED or CANCELLED, got \"" + name + "\"");
}

Result<PageRequest> page_of(const wire::Request& request) {
  auto number = [&](const wire::Member& row) {
    const int64_t default_value = *row.default_integer;
    auto text = request.query_param(row);
    int64_t value = 0;
    if (!text) return default_value;
    auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), value);
    return failed == std::errc() && end == text->data() + text->size() ? value : default_value;
  };
  int64_t page = number(kPageQuery["page"]), size = number(kPageQuery["pageSize"]);
  if (page < 0) return fail(Code::invalid, "BAD_REQUEST", "page must not be negative");
  if (size <= 0) size = 20;
  return PageRequest{static_cast<size_t>(std::min<int64_t>(page, 1'000'000)),
                     std::min<size_t>(static_cast<size_t>(size), kMaxPage)};
}

Done reply_with(wire::Respond respond, int status) {
  return [respond = std::move(respond), status](Result<Bytes> answer) mutable {
    if (!answer) return respond(refusal(answer.error()));
    if (status == 204) return respond(no_content());
    respond(ok(status, std::move(*answer)));
  };
}

void append_job(std::string& out, const PolledJob& p, std::string_view worker) {
  out += "{\"id\":\"" + p.job.id + "\",\"instanceId\":\"" + p.job.instance_id +
         "\",\"stepExecutionId\":\"" + p.job.execution_id + "\",\"stepId\":";
  json::append_string(out, p.job.step_id);
  json::append_string(out += ",\"jobType\":", p.type);
  json::append_string(out += ",\"status\":\"LOCKED\",\"workerId\":", worker);
  append_time(out += ",\"lockedAt\":", p.locked);
  append_time(out += ",\"lockExpiresAt\":", p.until);
  out += ",\"retriesRemaining\":" + std::to_string(p.job.retries_left) +
         ",\"variables\":" + p.job.variables;
  append_time(out += ",\"createdAt\":", p.job.created);
  out += '}';
}

}  // namespace pawl::processes

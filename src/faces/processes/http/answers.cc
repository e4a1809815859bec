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

std::unexpected<Error> bad(std::string what) {
  return fail(Code::invalid, "BAD_REQUEST", std::move(what));
}

const json::Value* present(const json::Value& body, std::string_view name) {
  const json::Value* v = body.find(name);
  return v && !v->is_null() ? v : nullptr;
}

std::unexpected<Error> wrong_type(std::string_view name, std::string_view wants,
                                  const json::Value& got) {
  return bad(std::string(name) + " must be " + std::string(wants) + ", got " +
             std::string(got.kind_name()));
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

Result<json::Value> body_object(const wire::Request& request, bool may_be_empty) {
  bool blank = request.body.find_first_not_of(" \t\r\n") == std::string::npos;
  if (blank && may_be_empty) return json::Value(json::Object{});
  if (blank) return bad("the body must be a JSON object, got nothing");
  auto parsed = json::parse(request.body, {.prefix = true});
  if (!parsed)
    return fail(Code::invalid, parsed.error().reason,
                "the body is not JSON: " + parsed.error().message);
  if (parsed->is_null())
    return json::Value(json::Object{});  // some clients send null for an empty body
  if (!parsed->is_object())
    return bad("the body must be a JSON object, got " + std::string(parsed->kind_name()));
  return parsed;
}

Result<std::string> text_member(const json::Value& body, std::string_view name) {
  const json::Value* v = present(body, name);
  if (!v) return std::string();
  if (!v->is_string()) return wrong_type(name, "a string", *v);
  return v->string();
}

Result<int64_t> whole_member(const json::Value& body, std::string_view name,
                             int64_t default_value) {
  const json::Value* v = present(body, name);
  if (!v) return default_value;
  if (!v->is_number() || !v->as_int64()) return wrong_type(name, "an integer", *v);
  return *v->as_int64();
}

Result<bool> flag_member(const json::Value& body, std::string_view name) {
  const json::Value* v = present(body, name);
  if (!v) return false;
  if (!v->is_bool()) return wrong_type(name, "a boolean", *v);
  return v->boolean();
}

Result<VariablesPtr> variables_member(json::Value& body, std::string_view name) {
  json::Value* v = body.find(name);
  if (!v || v->is_null()) return make_variables({});
  if (!v->is_object()) return wrong_type(name, "an object", *v);
  return make_variables(std::move(v->object()));
}

Result<std::vector<std::string>> texts_member(const json::Value& body, std::string_view name) {
  const json::Value* v = present(body, name);
  std::vector<std::string> out;
  if (!v) return out;
  if (!v->is_array()) return wrong_type(name, "an array of strings", *v);
  for (const json::Value& item : v->array()) {
    if (!item.is_string()) return wrong_type(name, "an array of strings", *v);
    out.push_back(item.string());
  }
  return out;
}

Result<StartCommand> start_command(json::Value& body) {
  StartCommand c;
  TRY(c.definition_id, text_member(body, "definitionId"));
  TRY(int64_t version, whole_member(body, "definitionVersion", 0));
  c.version = static_cast<uint32_t>(std::clamp<int64_t>(version, 0, UINT32_MAX));
  TRY(c.variables, variables_member(body, "variables"));
  TRY(c.business_key, text_member(body, "businessKey"));
  return c;
}

Result<PageRequest> page_of(const wire::Request& request) {
  auto number = [&](std::string_view name, int64_t default_value) {
    auto text = request.query_param(name);
    int64_t value = 0;
    if (!text) return default_value;
    auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), value);
    return failed == std::errc() && end == text->data() + text->size() ? value : default_value;
  };
  int64_t page = number("page", 0), size = number("pageSize", 20);
  if (page < 0) return bad("page must not be negative");
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

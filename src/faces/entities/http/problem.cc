#include "faces/entities/http/problem.h"

#include <fmt/format.h>

#include "base/log.h"
#include "faces/entities/store/entity.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

// The codes of the contract.
constexpr ErrorCode kCodes[] = {
    {"BAD_REQUEST", 400},
    {"VALIDATION_FAILED", 400},
    {"WORKFLOW_FAILED", 400},
    {"TRANSITION_NOT_FOUND", 404},
    {"WORKFLOW_NOT_FOUND", 404},
    {"MODEL_NOT_FOUND", 404},
    {"MODEL_NOT_LOCKED", 409},
    {"MODEL_ALREADY_LOCKED", 409},
    {"MODEL_ALREADY_UNLOCKED", 409},
    {"MODEL_HAS_ENTITIES", 409},
    {"INVALID_CHANGE_LEVEL", 400},
    {"INCOMPATIBLE_TYPE", 400},
    {"POLYMORPHIC_SLOT", 400},
    {"ENTITY_NOT_FOUND", 404},
    {"ENTITY_MODIFIED", 412},
    {"CONFLICT", 409},
    {"CONDITION_TYPE_MISMATCH", 400},
    {"INVALID_FIELD_PATH", 400},
    {"SEARCH_JOB_NOT_FOUND", 404},
    {"SEARCH_JOB_ALREADY_TERMINAL", 400},
    {"UNIQUE_VIOLATION", 409},
    {"INVALID_UNIQUE_KEY", 422},
    {"INVALID_UNIQUE_KEY_DEFINITION", 422},
    {"UNAUTHORIZED", 401},
    {"FORBIDDEN", 403},
    {"NOT_IMPLEMENTED", 501},
    {"NO_COMPUTE_MEMBER_FOR_TAG", 503},
    {"COMPUTE_MEMBER_DISCONNECTED", 503},
    {"DISPATCH_TIMEOUT", 503},
    {"SCHEDULE_FUNCTION_INVALID_RESULT", 500},
    {"M2M_CLIENT_NOT_FOUND", 404},
    {"TRUSTED_KEY_NOT_FOUND", 404},
    {"TRUSTED_KEY_CAP_REACHED", 409},
    {"KEY_CAP_REACHED", 409},
    {"COMMIT_IN_JOINED_TRANSACTION", 409},
    {"IDEMPOTENCY_KEY_REUSED", 422},
    {"IDEMPOTENCY_KEY_RUNNING", 409},
    {"MALFORMED_REQUEST", 400},
    {"MISSING_GROUP_BY", 400},
    {"DUPLICATE_GROUP_BY", 400},
    {"INVALID_GROUP_BY_PATH", 400},
    {"INVALID_AGGREGATION_OP", 400},
    {"INVALID_AGGREGATION_FIELD", 400},
    {"DUPLICATE_AGGREGATION_ALIAS", 400},
    {"INVALID_LIMIT", 400},
    {"GROUP_CARDINALITY_EXCEEDED", 422},
    {"SEARCH_TOO_LONG", 422},
    {"CRITERIA_TOO_EXPENSIVE", 422},
    {"MODEL_GROWS_TOO_OFTEN", 422},
    {"METHOD_NOT_ALLOWED", 405},
    {"UNSUPPORTED_MEDIA_TYPE", 415},
    {"HELP_TOPIC_NOT_FOUND", 404},
    {"NOT_FOUND", 404},
    {"MESSAGE_TOO_LARGE", 413},
};

// Every conflict may be retried, whichever layer reports it.
constexpr Reason kConflict{"CONFLICT"};

// The answer for errors of other layers, by their code.
Problem by_code(const Error& error) {
  switch (error.code) {
    case Code::invalid:
    case Code::too_large: return {400, "BAD_REQUEST", false};
    case Code::unauthenticated: return {401, "UNAUTHORIZED", false};
    case Code::denied: return {403, "FORBIDDEN", false};
    case Code::not_found: return {404, "NOT_FOUND", false};
    case Code::conflict: return {409, "CONFLICT", true};
    case Code::precondition: return {412, "ENTITY_MODIFIED", false};
    case Code::unprocessable: return {422, "UNPROCESSABLE", false};
    case Code::unsupported: return {501, "NOT_IMPLEMENTED", false};
    case Code::exhausted: return {429, "TOO_MANY_REQUESTS", true};
    case Code::unavailable: return {503, "UNAVAILABLE", true};
    case Code::corrupt:
    case Code::internal: break;
  }
  return {500, "SERVER_ERROR", false};
}

// Makes a ticket number for an internal error and logs it with the cause, which the caller does not
// see.
std::string ticket_for(const wire::Request& request, const Error& error) {
  static std::atomic<uint64_t> count{0};
  std::string ticket =
      dice_from(fmt::format("{}{}{}{}", request.path, error.message, count.fetch_add(1),
                            reinterpret_cast<uintptr_t>(&request)))
          .uuid4();
  log(Level::error, "entities",
      {{"ticket", ticket},
       {"method", request.method},
       {"path", request.path},
       {"reason", error.reason},
       {"why", error.message}});
  return ticket;
}

}  // namespace

std::span<const ErrorCode> error_codes() { return kCodes; }

Problem problem_of(const Error& error) {
  for (const ErrorCode& row : kCodes)
    if (row.code == error.reason)
      return {row.status, error.reason, error.retryable || error.is(kConflict)};
  return by_code(error);
}

wire::Response problem(const wire::Request& request, const Error& error, std::string_view prefix,
                       bool verbose) {
  Problem p = problem_of(error);
  json::Object properties;
  properties.add("errorCode", p.code);
  if (p.retryable) properties.add("retryable", true);
  if (!error.detail.empty())
    if (auto more = json::parse(error.detail); more && more->is_object())
      for (json::Member& m : more->object())
        properties.set(m.name, std::move(m.value));
  std::string_view path = request.path;
  if (path.starts_with(prefix)) path.remove_prefix(prefix.size());
  json::Object body;
  body.add("type", "about:blank");
  body.add("title", wire::reason_phrase(p.status));
  body.add("status", p.status);
  if (p.status == 500) {
    std::string ticket = ticket_for(request, error);
    body.add("detail", verbose ? fmt::format("{}: {} [ticket: {}]", p.code, error.message, ticket)
                               : fmt::format("{}: internal error [ticket: {}]", p.code, ticket));
    body.add("ticket", ticket);
  } else {
    body.add("detail", fmt::format("{}: {}", p.code, error.message));
  }
  body.add("instance", path);
  body.add("properties", std::move(properties));
  wire::Response response = wire::json_response(p.status, json::print(body));
  for (auto& [name, value] : response.headers)
    if (name == "Content-Type" || name == "content-type") value = "application/problem+json";
  if (p.status == 429 || p.status == 503) response.headers.emplace_back("Retry-After", "1");
  if (p.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace pawl::entities

#include "faces/worlds/http/http_routes.h"

#include "json/text.h"

namespace pawl::worlds {
namespace {

// The peer's statuses are those of the shared table but for two: a version that is not the newest
// is a conflict, and a world that is busy is unavailable for a moment.
int http_status(const Error& error) {
  if (error.is({"METHOD_NOT_ALLOWED"})) return 405;
  if (error.code == Code::precondition) return 409;
  if (error.code == Code::exhausted) return 503;
  return wire::code_status(error.code).http;
}

}  // namespace

// {code, message} and, where there is one, {detail}.
wire::Response HttpRoutes::refuse(const Error& error) {
  json::Object body;
  body.add("code", json::Value(error_name(error)));
  body.add("message", error.message);
  if (!error.detail.empty())
    if (auto detail = json::parse(error.detail)) body.add("detail", std::move(*detail));
  const int status = http_status(error);
  wire::Response response = wire::json_response(status, json::print(json::Value(std::move(body))));
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Reply answer_json(wire::Respond respond, int status) {
  return [respond = std::move(respond), status](Result<Answer> answer) mutable {
    if (!answer) return respond(HttpRoutes::refuse(answer.error()));
    respond(wire::json_response(status, std::move(answer->body)));
  };
}

std::string accepted_json(std::string open_object, Seq seq, std::string_view submission,
                          std::string_view more) {
  const std::string offset = std::to_string(seq);
  open_object.append(more);
  open_object.append(",\"submission_id\":");
  open_object.append(json::quote(submission.empty() ? offset : submission));
  open_object.append(",\"submission_offset\":").append(offset);
  return open_object.append(",\"effective_partition\":0}");
}

Reply answer_accepted(wire::Respond respond, int status, std::string submission, std::string more) {
  return [respond = std::move(respond), status, submission = std::move(submission),
          more = std::move(more)](Result<Answer> answer) mutable {
    if (!answer) return respond(HttpRoutes::refuse(answer.error()));
    answer->body.pop_back();
    respond(wire::json_response(
        status, accepted_json(std::move(answer->body), answer->seq, submission, more)));
  };
}

Result<WorldSnapshot> HttpRoutes::snapshot_of(const Request& request) const {
  return service_.open_snapshot({request.caller.tenant, request.params.at(0)});
}

Result<WorldRef> HttpRoutes::world_of(const Request& request) const {
  return service_.world_ref({request.caller.tenant, request.params.at(0)});
}

wire::Handler HttpRoutes::bind(Handle handle) {
  return [this, handle](Request request, Respond respond) {
    (this->*handle)(std::move(request), std::move(respond));
  };
}

wire::Handler HttpRoutes::bind(Read read) {
  return [this, read](Request request, Respond respond) {
    auto answer = (this->*read)(request);
    respond(answer ? wire::json_response(200, json::print(*answer)) : refuse(answer.error()));
  };
}

}  // namespace pawl::worlds

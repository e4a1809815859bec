// Routes of retention: the deletion of one instance, and the default of a tenant.

#include "faces/processes/definition/shapes.h"
#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"

namespace pawl::processes {

namespace {

constexpr AnswerShape kForgotten{
    "DeletedInstance",
    {text("instanceId"), flag("deleted"), integer("lastEvent"),
     any("archivedUntil", "Until when the journal shows it; null: for ever.").example("null")}};
constexpr Operation kForget{.id = "deleteInstance",
                            .path = &kInstancePath,
                            .headers = &wire::kIdempotencyHeader,
                            .replies = {{200, "The instance is deleted.", kForgotten}},
                            .errors = {409, 422}};
constexpr Operation kGetRetention{.id = "getRetention",
                                  .replies = {{200, "The durations.", document::kRetention}}};
constexpr Operation kPutRetention{.id = "setRetention",
                                  .headers = &wire::kIdempotencyHeader,
                                  .body = {document::kRetention},
                                  .replies = {{200, "The durations.", document::kRetention}},
                                  .errors = {409, 422}};

void set_retention(Service& service, wire::Request request, wire::Respond respond) {
  auto body = wire::BodyReader::of(request, kBody);
  if (!body) return respond(refusal(body.error()));
  service.set_retention(submitter_of(request), body->value(), reply_with(std::move(respond), 200));
}

}  // namespace

std::vector<wire::Route> retention_routes(Service& s) {
  using wire::Request, wire::Respond;
  const std::string p = "/pawl/v1/processes";
  auto forget = [&s](Request r, Respond a) {
    s.forget(submitter_of(r), r.params[0], reply_with(std::move(a), 200));
  };
  return {
      {"DELETE", "/v1/instances/{id}", forget, "Deletes an instance that has ended.", &kForget},
      {"GET", p + "/retention",
       [&s](Request r, Respond a) {
         respond_with(a, [&] { return s.retention(r.caller.tenant); });
       },
       "Shows how long instances stay after their end when their definition does not say it.",
       &kGetRetention},
      {"PUT", p + "/retention",
       [&s](Request r, Respond a) { set_retention(s, std::move(r), std::move(a)); },
       "Sets the default retention: durations by completed, failed and cancelled.", &kPutRetention},
  };
}

}  // namespace pawl::processes

// Routes of retention: the deletion of one instance, and the default of a tenant.

#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"

namespace pawl::processes {

namespace {

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
      {"DELETE", "/v1/instances/{id}", forget, "Deletes an instance that has ended."},
      {"GET", p + "/retention",
       [&s](Request r, Respond a) {
         respond_with(a, [&] { return s.retention(r.caller.tenant); });
       },
       "Shows how long instances stay after their end when their definition does not say it."},
      {"PUT", p + "/retention",
       [&s](Request r, Respond a) { set_retention(s, std::move(r), std::move(a)); },
       "Sets the default retention: durations by completed, failed and cancelled."},
  };
}

}  // namespace pawl::processes

#include "faces/processes/face.h"

#include "faces/processes/http/answers.h"

namespace pawl::processes {

namespace {

constexpr Operation kHealth{.id = "getProcessesHealth", .replies = {{200, "The server runs."}}};

wire::Response refuse(const wire::Request&, const Error& error, std::string_view allow) {
  if (!allow.empty()) return {.status = 405, .headers = {{"Allow", std::string(allow)}}};
  if (error.code == Code::not_found) return wire::text_response(404, "404 page not found\n");
  return refusal(error);
}

wire::Cors cors(std::string_view) {
  return {
      "*",  "GET, POST, OPTIONS", "Accept, Authorization, Content-Type, Idempotency-Key", 300, 200,
      false};
}

}  // namespace

std::vector<wire::Route> Face::routes() {
  std::vector<wire::Route> out;
  out.push_back(wire::open({"GET", "/healthz",
                            [](wire::Request, wire::Respond respond) { respond({.status = 200}); },
                            "Says that the server runs: an empty 200.", &kHealth}));
  for (auto* rows : {definition_routes, instance_routes, job_routes, operator_routes,
                     incident_routes, batch_routes, query_routes, signal_routes, retention_routes})
    for (wire::Route& row : rows(service_))
      out.push_back(std::move(row));
  for (wire::Route& row : schedule_routes(schedules_))
    out.push_back(std::move(row));
  return out;
}

std::vector<wire::Dialect> Face::dialects() const {
  std::vector<wire::Dialect> out;
  for (const char* prefix : {"/v1", "/pawl/v1/processes", "/healthz"})
    out.push_back(
        {prefix, refuse, cors, {.shape = &kError, .plain_404 = true, .tag = "processes"}});
  return out;
}

}  // namespace pawl::processes

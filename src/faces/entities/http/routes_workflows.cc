#include <fmt/format.h>

#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

// Import and export of workflows.

namespace pawl::entities {

namespace {

Result<void> import_all(const HttpExchangePtr& http) {
  TRY(int32_t version, http->version(1));
  TRY(json::Value request, http->body());
  json::Value body = json::object({{"name", http->param(0)}, {"version", version}});
  body.object().add("request", std::move(request));
  http->service().act(http->context(), "flows.import", std::move(body), reply_to(http));
  return {};
}

Result<Bytes> export_all(HttpExchange& http) {
  TRY(int32_t version, http.version(1));
  TRY(auto flows, http.service().flows(http.tenant(), http.param(0), version));
  if (!flows || flows->workflows.empty())
    return fail(
        Code::not_found, "WORKFLOW_NOT_FOUND",
        fmt::format("no workflows are stored for entityName={}, version={}", http.param(0),
                    version),
        json::print(json::object({{"entityName", http.param(0)}, {"entityVersion", version}})));
  return json::print(json::object({{"entityName", http.param(0)},
                                   {"modelVersion", version},
                                   {"workflows", flows->definitions}}));
}

}  // namespace

void add_workflow_routes(RouteTable& routes) {
  routes.add_async("POST", "/model/{name}/{version}/workflow/import", import_all,
                   "Imports workflows: MERGE, REPLACE or ACTIVATE.", http::kImportFlows);
  routes.add("GET", "/model/{name}/{version}/workflow/export", export_all, "The stored workflows.",
             http::kExportFlows);
}

}  // namespace pawl::entities

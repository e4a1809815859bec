#include <fmt/format.h>

#include "faces/entities/http/routes.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

Result<void> import_all(const HttpPtr& http) {
  TRY(int32_t version, http->version(1));
  TRY(json::Value request, http->body());
  json::Value body = json::object({{"name", http->param(0)}, {"version", version}});
  body.object().add("request", std::move(request));
  http->service().act(http->who(), "flows.import", std::move(body),
                      [http](Result<Bytes> a) { http->reply(std::move(a)); });
  return {};
}

Result<Bytes> export_all(Http& http) {
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

void add_workflow_routes(Rows& rows) {
  rows.later("POST", "/model/{name}/{version}/workflow/import", import_all,
             "Imports workflows: MERGE, REPLACE or ACTIVATE.");
  rows.now("GET", "/model/{name}/{version}/workflow/export", export_all, "The stored workflows.");
}

}  // namespace pawl::entities

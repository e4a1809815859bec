// The table of operations, and the permissions of routes and calls that are found in it.

#include "server/auth/operations.h"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::server {
namespace {

using enum Permission;

constexpr Operation kGeneral[] = {
    {"GET", "/", open},
    {"GET", "/docs", open},
    {"GET", "/openapi.json", open},
};

constexpr Operation kAdmin[] = {
    {"GET", "/livez", open},
    {"GET", "/readyz", open},
    {"GET", "/startupz", open},
    {"GET", "/metrics", server_operate},
    {"POST", "/backup", server_operate},
    {"POST", "/scrub", server_operate},
    {"GET", "/quarantine", server_operate},
    {"POST", "/quarantine/release", server_operate},
};

constexpr Operation kProcesses[] = {
    {"GET", "/healthz", open},
    {"POST", "/v1/definitions", processes_model},
    {"GET", "/v1/definitions", processes_read},
    {"GET", "/v1/definitions/{id}", processes_read},
    {"GET", "/v1/definitions/{id}/versions/{version}", processes_read},
    {"POST", "/v1/instances", processes_write},
    {"GET", "/v1/instances", processes_read},
    {"GET", "/v1/instances/{id}", processes_read},
    {"DELETE", "/v1/instances/{id}", processes_operate},
    {"GET", "/v1/instances/{id}/history", processes_read},
    {"POST", "/v1/instances/{id}/cancel", processes_operate},
    {"POST", "/v1/instances/{id}/user-tasks/{step}/complete", processes_write},
    {"POST", "/v1/instances/{id}/steps/{step}/retry", processes_operate},
    {"POST", "/v1/instances/{id}/signals/{step}", processes_write},
    {"POST", "/v1/jobs/poll", processes_work},
    {"POST", "/v1/jobs/{id}/heartbeat", processes_work},
    {"POST", "/v1/jobs/{id}/complete", processes_work},
    {"POST", "/v1/jobs/{id}/fail", processes_work},
    {"GET", "/v1/jobs/{id}/explain", processes_read},
    {"GET", "/pawl/v1/processes/instances", processes_read},
    {"GET", "/pawl/v1/processes/instances/{id}", processes_read},
    {"GET", "/pawl/v1/processes/instances/{id}/events", processes_read},
    {"GET", "/pawl/v1/processes/instances/{id}/events/{event}", processes_read},
    {"GET", "/pawl/v1/processes/tasks", processes_read},
    {"GET", "/pawl/v1/processes/definitions", processes_read},
    {"GET", "/pawl/v1/processes/job-types", processes_read},
    {"GET", "/pawl/v1/processes/incidents", processes_read},
    {"POST", "/pawl/v1/processes/dry-run", processes_model},
    {"POST", "/pawl/v1/processes/validate", processes_model},
    {"GET", "/pawl/v1/processes/definitions/{id}/versions", processes_read},
    {"GET", "/pawl/v1/processes/definitions/{id}/diff", processes_read},
    {"POST", "/pawl/v1/processes/definitions/{id}/activate", processes_model},
    {"POST", "/pawl/v1/processes/definitions/{id}/retire", processes_model},
    {"DELETE", "/pawl/v1/processes/definitions/{id}", processes_model},
    {"POST", "/pawl/v1/processes/definitions/{id}/pause", processes_operate},
    {"POST", "/pawl/v1/processes/definitions/{id}/resume", processes_operate},
    {"POST", "/pawl/v1/processes/job-types/{type}/pause", processes_operate},
    {"POST", "/pawl/v1/processes/job-types/{type}/resume", processes_operate},
    {"GET", "/pawl/v1/processes/instances/{id}/queries", processes_read},
    {"GET", "/pawl/v1/processes/instances/{id}/queries/{name}", processes_read},
    {"GET", "/pawl/v1/processes/retention", processes_read},
    {"PUT", "/pawl/v1/processes/retention", processes_operate},
    {"POST", "/pawl/v1/processes/signals", processes_write},
    {"GET", "/pawl/v1/processes/signals", processes_read},
    {"DELETE", "/pawl/v1/processes/signals/{id}", processes_operate},
    {"POST", "/pawl/v1/processes/instances/{id}/restart", processes_operate},
    {"POST", "/pawl/v1/processes/instances/{id}/{operation}", processes_operate},
    {"POST", "/pawl/v1/processes/bulk/{operation}", processes_operate},
    {"POST", "/pawl/v1/processes/schedules", processes_operate},
    {"GET", "/pawl/v1/processes/schedules", processes_read},
    {"GET", "/pawl/v1/processes/schedules/{id}", processes_read},
    {"PUT", "/pawl/v1/processes/schedules/{id}", processes_operate},
    {"DELETE", "/pawl/v1/processes/schedules/{id}", processes_operate},
    {"GET", "/pawl/v1/processes/schedules/{id}/next", processes_read},
    {"GET", "/pawl/v1/processes/schedules/{id}/runs", processes_read},
    {"POST", "/pawl/v1/processes/schedules/{id}/pause", processes_operate},
    {"POST", "/pawl/v1/processes/schedules/{id}/resume", processes_operate},
    {"POST", "/pawl/v1/processes/schedules/{id}/trigger", processes_operate},
    {"POST", "/pawl/v1/processes/start-batch", processes_write},
    {"POST", "/pawl/v1/processes/complete-batch", processes_work},
    {"gRPC", "/workflow.v1.WorkflowEngine/UploadDefinition", processes_model},
    {"gRPC", "/workflow.v1.WorkflowEngine/GetDefinition", processes_read},
    {"gRPC", "/workflow.v1.WorkflowEngine/ListDefinitions", processes_read},
    {"gRPC", "/workflow.v1.WorkflowEngine/StartInstance", processes_write},
    {"gRPC", "/workflow.v1.WorkflowEngine/GetInstance", processes_read},
    {"gRPC", "/workflow.v1.WorkflowEngine/GetInstanceHistory", processes_read},
    {"gRPC", "/workflow.v1.WorkflowEngine/CancelInstance", processes_operate},
    {"gRPC", "/workflow.v1.WorkflowEngine/ListInstances", processes_read},
    {"gRPC", "/workflow.v1.WorkflowEngine/PollJobs", processes_work},
    {"gRPC", "/workflow.v1.WorkflowEngine/ExtendJobLease", processes_work},
    {"gRPC", "/workflow.v1.WorkflowEngine/CompleteJob", processes_work},
    {"gRPC", "/workflow.v1.WorkflowEngine/FailJob", processes_work},
    {"gRPC", "/workflow.v1.WorkflowEngine/CompleteUserTask", processes_write},
    {"gRPC", "/workflow.v1.WorkflowEngine/SignalWait", processes_write},
    {"gRPC", "/workflow.v1.WorkflowEngine/RetryStep", processes_operate},
    {"gRPC", "/pawl.v1.Workers/Work", processes_work},
};

constexpr Operation kEntities[] = {
    {"GET", "/api/health", open},
    {"GET", "/help", open},
    {"GET", "/help/{topic...}", open},
    {"GET", "/api/help", open},
    {"GET", "/api/help/{topic...}", open},
    {"GET", "/api/.well-known/jwks.json", open},
    {"POST", "/api/oauth/token", open},
    {"GET", "/api/account", signed_in},
    {"GET", "/api/admin/log-level", server_operate},
    {"POST", "/api/admin/log-level", server_operate},
    {"GET", "/api/admin/trace-sampler", server_operate},
    {"POST", "/api/admin/trace-sampler", server_operate},
    {"GET", "/api/account/m2m", tenant_access},
    {"POST", "/api/account/m2m", tenant_access},
    {"DELETE", "/api/account/m2m/{id}", tenant_access},
    {"POST", "/api/account/m2m/{id}/secret/reset", tenant_access},
    {"GET", "/api/oauth/keys/keypair", tenant_access},
    {"POST", "/api/oauth/keys/keypair", tenant_access},
    {"GET", "/api/oauth/keys/keypair/current", tenant_access},
    {"POST", "/api/oauth/keys/keypair/{id}/invalidate", tenant_access},
    {"POST", "/api/oauth/keys/keypair/{id}/reactivate", tenant_access},
    {"DELETE", "/api/oauth/keys/keypair/{id}", tenant_access},
    {"GET", "/api/oauth/keys/trusted", tenant_access},
    {"POST", "/api/oauth/keys/trusted", tenant_access},
    {"POST", "/api/oauth/keys/trusted/{id}/invalidate", tenant_access},
    {"POST", "/api/oauth/keys/trusted/{id}/reactivate", tenant_access},
    {"DELETE", "/api/oauth/keys/trusted/{id}", tenant_access},
    {"POST", "/api/model/import/{dataFormat}/{converter}/{name}/{version}", entities_model},
    {"GET", "/api/model/export/{converter}/{name}/{version}", entities_read},
    {"POST", "/api/model/validate/{name}/{version}", entities_read},
    {"GET", "/api/model/", entities_read},
    {"GET", "/api/model", entities_read},
    {"PUT", "/api/model/{name}/{version}/lock", entities_model},
    {"PUT", "/api/model/{name}/{version}/unlock", entities_model},
    {"POST", "/api/model/{name}/{version}/changeLevel/{level}", entities_model},
    {"DELETE", "/api/model/{name}/{version}", entities_model},
    {"PUT", "/api/model/{name}/{version}/indexes", entities_model},
    {"GET", "/api/model/{name}/{version}/indexes", entities_read},
    {"PUT", "/api/model/{name}/{version}/unique-keys", entities_model},
    {"GET", "/api/model/{name}/{version}/unique-keys", entities_read},
    {"POST", "/api/model/{name}/{version}/workflow/import", entities_model},
    {"GET", "/api/model/{name}/{version}/workflow/export", entities_read},
    {"POST", "/api/entity/{format}/{name}/{version}", entities_write},
    {"POST", "/api/entity/{format}", entities_write},
    {"PUT", "/api/entity/{format}", entities_write},
    {"GET", "/api/entity/{id}", entities_read},
    {"DELETE", "/api/entity/{id}", entities_write},
    {"GET", "/api/entity/{id}/changes", entities_read},
    {"GET", "/api/entity/{id}/transitions", entities_read},
    {"GET", "/api/platform-api/entity/fetch/transitions", entities_read},
    {"PUT", "/api/platform-api/entity/transition", entities_write},
    {"PUT", "/api/entity/{format}/{id}", entities_write},
    {"PUT", "/api/entity/{format}/{id}/{transition}", entities_write},
    {"PATCH", "/api/entity/{format}/{id}", entities_write},
    {"PATCH", "/api/entity/{format}/{id}/{transition}", entities_write},
    {"GET", "/api/entity/{name}/{version}", entities_read},
    {"DELETE", "/api/entity/{name}/{version}", entities_write},
    {"GET", "/api/entity/stats", entities_read},
    {"GET", "/api/entity/stats/{name}/{version}", entities_read},
    {"GET", "/api/entity/stats/states", entities_read},
    {"GET", "/api/entity/stats/states/{name}/{version}", entities_read},
    {"POST", "/api/entity/stats/{name}/{version}/query", entities_read},
    {"POST", "/api/search/direct/{name}/{version}", entities_read},
    {"POST", "/api/search/{name}/{version}", entities_read},
    {"POST", "/api/search/async/{name}/{version}", entities_read},
    {"GET", "/api/search/async/{job}/status", entities_read},
    {"GET", "/api/search/async/{job}", entities_read},
    {"PUT", "/api/search/async/{job}/cancel", entities_read},
    {"GET", "/api/audit/entity/{id}", entities_read},
    {"GET", "/api/audit/entity/{id}/workflow/{tx}/finished", entities_read},
    {"POST", "/api/message/new/{subject}", entities_write},
    {"GET", "/api/message/{id}", entities_read},
    {"GET", "/api/message/get/{id}", entities_read},
    {"DELETE", "/api/message/{id}", entities_write},
    {"DELETE", "/api/message", entities_write},
    {"GET", "/api/clients", signed_in},
    {"POST", "/api/clients", signed_in},
    {"DELETE", "/api/clients/{id}", signed_in},
    {"PUT", "/api/clients/{id}/secret", signed_in},
    {"GET", "/api/account/subscriptions", signed_in},
    {"GET", "/api/oauth/oidc/providers", signed_in},
    {"POST", "/api/oauth/oidc/providers", signed_in},
    {"POST", "/api/oauth/oidc/providers/reload", signed_in},
    {"PATCH", "/api/oauth/oidc/providers/{id}", signed_in},
    {"DELETE", "/api/oauth/oidc/providers/{id}", signed_in},
    {"POST", "/api/oauth/oidc/providers/{id}/invalidate", signed_in},
    {"POST", "/api/oauth/oidc/providers/{id}/reactivate", signed_in},
    {"GET", "/api/sql/schema/{rest...}", signed_in},
    {"POST", "/api/sql/schema/{rest...}", signed_in},
    {"PUT", "/api/sql/schema/{rest...}", signed_in},
    {"DELETE", "/api/sql/schema/{rest...}", signed_in},
    {"GET", "/api/platform-api/stream-data/{rest...}", signed_in},
    {"POST", "/api/platform-api/stream-data/{rest...}", signed_in},
    {"PUT", "/api/platform-api/stream-data/{rest...}", signed_in},
    {"DELETE", "/api/platform-api/stream-data/{rest...}", signed_in},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/startStreaming", entities_member},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManage", signed_in},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManageCollection", signed_in},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearch", signed_in},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearchCollection", signed_in},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entityModelManage", signed_in},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManage EntityCreateRequest",
     entities_write},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManage EntityUpdateRequest",
     entities_write},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManage EntityPatchRequest",
     entities_write},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManage EntityTransitionRequest",
     entities_write},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManage EntityDeleteRequest",
     entities_write},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManageCollection "
     "EntityCreateCollectionRequest",
     entities_write},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManageCollection "
     "EntityUpdateCollectionRequest",
     entities_write},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManageCollection EntityDeleteAllRequest",
     entities_write},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearch EntityGetRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearch EntitySnapshotSearchRequest",
     entities_read},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearch SnapshotGetStatusRequest",
     entities_read},
    {"gRPC", "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearch SnapshotCancelRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearchCollection EntityGetAllRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearchCollection EntitySearchRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearchCollection EntityStatsGetRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearchCollection "
     "EntityStatsByStateGetRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearchCollection "
     "EntityChangesMetadataGetRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entitySearchCollection SnapshotGetRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entityModelManage EntityModelImportRequest",
     entities_model},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entityModelManage EntityModelExportRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entityModelManage EntityModelTransitionRequest",
     entities_model},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entityModelManage EntityModelDeleteRequest",
     entities_model},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entityModelManage EntityModelGetAllRequest",
     entities_read},
    {"gRPC",
     "/org.cyoda.cloud.api.grpc.CloudEventsService/entityModelManage "
     "EntityModelSetUniqueKeysRequest",
     entities_model},
};

constexpr Operation kLifecycle[] = {
    {"GET", "/workflows", lifecycle_read},
    {"GET", "/workflows/{type}", lifecycle_read},
    {"GET", "/workflows/{type}/{id}", lifecycle_read},
    {"GET", "/workflows/{type}/{id}/history", lifecycle_read},
    {"GET", "/workflows/{type}/{id}/children", lifecycle_read},
    {"POST", "/workflows/{type}/{id}/state", lifecycle_operate},
    {"POST", "/workflows/{type}/{id}/transition", lifecycle_operate},
    {"GET", "/pawl/v1/lifecycle/types", lifecycle_read},
    {"GET", "/pawl/v1/lifecycle/types/{type}", lifecycle_read},
    {"PUT", "/pawl/v1/lifecycle/types/{type}", lifecycle_model},
    {"GET", "/pawl/v1/lifecycle/instances/{type}", lifecycle_read},
    {"POST", "/pawl/v1/lifecycle/instances/{type}/{id}", lifecycle_write},
    {"PUT", "/pawl/v1/lifecycle/instances/{type}/{id}", lifecycle_write},
    {"DELETE", "/pawl/v1/lifecycle/instances/{type}/{id}", lifecycle_write},
    {"POST", "/pawl/v1/lifecycle/instances/{type}/{id}/transition", lifecycle_write},
    {"POST", "/pawl/v1/lifecycle/instances/{type}/{id}/complete", lifecycle_write},
    {"POST", "/pawl/v1/lifecycle/instances/{type}/{id}/fail", lifecycle_write},
    {"GET", "/pawl/v1/lifecycle/lookup/{id}", lifecycle_read},
    {"GET", "/pawl/v1/lifecycle/ancestors/{id}", lifecycle_read},
    {"GET", "/pawl/v1/lifecycle/children", lifecycle_read},
    {"GET", "/pawl/v1/lifecycle/children/{id}", lifecycle_read},
    {"GET", "/pawl/v1/lifecycle/rules", lifecycle_read},
    {"GET", "/pawl/v1/lifecycle/rules/{name}", lifecycle_read},
    {"PUT", "/pawl/v1/lifecycle/rules/{name}", lifecycle_model},
    {"DELETE", "/pawl/v1/lifecycle/rules/{name}", lifecycle_model},
    {"POST", "/pawl/v1/lifecycle/rules/{name}/run", lifecycle_write},
    {"POST", "/pawl/v1/lifecycle/actions", lifecycle_write},
    {"POST", "/pawl/v1/lifecycle/substitute", lifecycle_read},
};

constexpr Operation kWorlds[] = {
    {"GET", "/v1/health", open},
    {"GET", "/v1/worlds", worlds_read},
    {"POST", "/v1/worlds", worlds_model},
    {"GET", "/v1/worlds/{id}", worlds_read},
    {"POST", "/v1/worlds/{id}/checkpoint", worlds_operate},
    {"POST", "/v1/worlds/{id}/compact", worlds_operate},
    {"POST", "/v1/worlds/{id}/fork", worlds_model},
    {"GET", "/v1/worlds/{id}/manifest", worlds_read},
    {"GET", "/v1/worlds/{id}/defs", worlds_read},
    {"GET", "/v1/worlds/{id}/defs/{kind}/{name...}", worlds_read},
    {"GET", "/v1/worlds/{id}/runtime", worlds_read},
    {"GET", "/v1/worlds/{id}/trace", worlds_read},
    {"GET", "/v1/worlds/{id}/trace-summary", worlds_read},
    {"GET", "/v1/worlds/{id}/diagnose", worlds_read},
    {"GET", "/v1/worlds/{id}/journal/head", worlds_read},
    {"GET", "/v1/worlds/{id}/journal", worlds_read},
    {"GET", "/v1/worlds/{id}/journal/wait", worlds_read},
    {"GET", "/v1/worlds/{id}/journal/stream", worlds_read},
    {"GET", "/v1/worlds/{id}/commands/{command}", worlds_read},
    {"GET", "/v1/worlds/{id}/state/{workflow...}", worlds_read},
    {"GET", "/v1/worlds/{id}/workspace/resolve", worlds_read},
    {"POST", "/v1/worlds/{id}/events", worlds_write},
    {"POST", "/v1/worlds/{id}/receipts", worlds_work},
    {"POST", "/v1/worlds/{id}/frames", worlds_work},
    {"GET", "/v1/worlds/{id}/governance", worlds_read},
    {"POST", "/v1/worlds/{id}/governance/{action}", worlds_model},
    {"POST", "/v1/effects/poll", worlds_work},
    {"POST", "/v1/effects/release", worlds_work},
    {"GET", "/v1/secrets/bindings", worlds_secrets},
    {"POST", "/v1/secrets/bindings", worlds_secrets},
    {"GET", "/v1/secrets/bindings/{id}", worlds_secrets},
    {"PUT", "/v1/secrets/bindings/{id}", worlds_secrets},
    {"DELETE", "/v1/secrets/bindings/{id}", worlds_secrets},
    {"GET", "/v1/secrets/bindings/{id}/versions", worlds_secrets},
    {"POST", "/v1/secrets/bindings/{id}/versions", worlds_secrets},
    {"GET", "/v1/secrets/bindings/{id}/versions/{version}", worlds_secrets},
    {"POST", "/v1/workspace/roots", worlds_write},
    {"GET", "/v1/workspace/roots/{root}/entries", worlds_read},
    {"GET", "/v1/workspace/roots/{root}/entry", worlds_read},
    {"GET", "/v1/workspace/roots/{root}/bytes", worlds_read},
    {"GET", "/v1/workspace/roots/{root}/annotations", worlds_read},
    {"POST", "/v1/workspace/roots/{root}/apply", worlds_write},
    {"POST", "/v1/workspace/diffs", worlds_read},
    {"POST", "/v1/cas/blobs", worlds_write},
    {"PUT", "/v1/cas/blobs/{sha}", worlds_write},
    {"GET", "/v1/cas/blobs/{sha}", worlds_read},
    {"POST", "/v1/cas/gc", worlds_operate},
    {"gRPC", "/pawl.v1.Executors/Poll", worlds_work},
    {"gRPC", "/pawl.v1.Executors/SendFrame", worlds_work},
    {"gRPC", "/pawl.v1.Executors/Settle", worlds_work},
    {"gRPC", "/pawl.v1.Executors/Release", worlds_work},
    {"gRPC", "/pawl.v1.Executors/Work", worlds_work},
};

constexpr OperationGroup kGroups[] = {
    {"The server itself", kGeneral}, {"The admin address", kAdmin}, {"Processes", kProcesses},
    {"Entities", kEntities},         {"Lifecycle", kLifecycle},     {"Worlds", kWorlds},
};

const Operation* find_route(std::string_view method, std::string_view pattern) {
  for (const OperationGroup& group : kGroups)
    for (const Operation& row : group.operations)
      if (row.method == method && row.target == pattern) return &row;
  return nullptr;
}

// The row of a route. HEAD has the permission of GET, and a path with a slash at its end that of
// the path without it.
const Operation* row_of(const wire::Route& route, std::string_view context_path) {
  std::string_view method = route.method == "HEAD" ? "GET" : std::string_view(route.method);
  std::string_view pattern = route.pattern;
  if (const Operation* row = find_route(method, pattern)) return row;
  if (pattern.starts_with(context_path)) {
    std::string usual(kDefaultContextPath);
    usual += pattern.substr(context_path.size());
    if (const Operation* row = find_route(method, usual)) return row;
  }
  if (pattern.size() > 1 && pattern.ends_with('/')) {
    pattern.remove_suffix(1);
    return find_route(method, pattern);
  }
  return nullptr;
}

}  // namespace

std::span<const OperationGroup> operation_groups() { return kGroups; }

Result<RoutePermissions> route_permissions(const wire::Router& router,
                                           std::string_view context_path) {
  RoutePermissions out;
  for (const wire::Route* route : router.rows()) {
    const Operation* row = row_of(*route, context_path);
    if (!row)
      return fail(Code::internal, "NO_PERMISSION_ROW",
                  fmt::format("{} {} has no row in the table of operations "
                              "(server/auth/operations.cc): add the permission that it needs",
                              route->method, route->pattern));
    if (route->open != (row->needs == open))
      return fail(
          Code::internal, "NO_PERMISSION_ROW",
          fmt::format("{} {} and its row in the table of operations disagree: the row needs "
                      "the permission {}",
                      route->method, route->pattern, permission_row(row->needs).name));
    out.emplace(route, row->needs);
  }
  return out;
}

bool leases_jobs(std::string_view target) {
  static constexpr std::string_view kPolls[] = {
      "/v1/jobs/poll",           "/v1/effects/poll",      "/workflow.v1.WorkflowEngine/PollJobs",
      "/pawl.v1.Executors/Poll", "/pawl.v1.Workers/Work", "/pawl.v1.Executors/Work"};
  return std::ranges::find(kPolls, target) != std::end(kPolls);
}

CallPermissions::CallPermissions() {
  for (const OperationGroup& group : kGroups)
    for (const Operation& row : group.operations)
      if (row.method == "gRPC") needs_.emplace(row.target, row.needs);
}

Result<Permission> CallPermissions::check(std::string_view target, PermissionSet granted) const {
  auto found = needs_.find(target);
  if (found == needs_.end())
    return fail(Code::denied, "FORBIDDEN",
                fmt::format("{} has no row in the table of operations", target));
  if (granted.has(found->second)) return found->second;
  return fail(missing_permission(found->second));
}

std::string operations_reference() {
  std::string out;
  for (const OperationGroup& group : kGroups) {
    out += fmt::format("{}### {}\n\n| operation | permission |\n|---|---|\n",
                       out.empty() ? "" : "\n", group.title);
    for (const Operation& row : group.operations)
      out += fmt::format("| `{} {}` | `{}` |\n", row.method, row.target,
                         permission_row(row.needs).name);
  }
  return out;
}

}  // namespace pawl::server

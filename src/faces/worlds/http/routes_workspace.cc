// Workspaces over HTTP: trees by root, and the versions that a world has committed.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/fields.h"
#include "faces/worlds/http/http_routes.h"
#include "faces/worlds/http/pages.h"
#include "faces/worlds/store/workspace.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

// Parameters of the query as the params of an effect.
cbor::Value params_of(const wire::Request& request, std::initializer_list<std::string_view> names) {
  cbor::Map out{{"root_hash", request.params.empty() ? std::string() : request.params[0]}};
  for (std::string_view name : names)
    if (auto given = request.query_param(name)) out.emplace_back(name, *given);
  return cbor::Value(std::move(out));
}

Result<std::optional<uint64_t>> some_number(const wire::Request& request, const wire::Member& row) {
  if (!request.query_param(row)) return std::optional<uint64_t>();
  TRY(uint64_t n, query_number(request, row, UINT64_MAX));
  return std::optional<uint64_t>(n);
}

}  // namespace

Result<json::Value> HttpRoutes::workspace_resolve(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  const std::string name = request.query_param(http::kResolveQuery["workspace"]).value_or("");
  TRY_OK(check_workspace_name(name));
  TRY(Cell cell, s.snapshot.read(
                     cell_key(s.world_id, kWorkspaceWorkflow, cbor::canonical(cbor::Value(name)))));
  std::optional<Bytes> history;
  if (cell.exists()) {
    TRY(Instance instance, decode_instance(cell.value()));
    history = std::move(instance.state);
  }
  TRY(std::optional<uint64_t> version, some_number(request, http::kResolveQuery["version"]));
  TRY(cbor::Value found, resolve_workspace(history, version));
  json::Object out;
  out.add("workspace", name);
  for (const auto& [key, value] : found.map())
    out.add(key.text(), plain_json(value));
  return json::Value(std::move(out));
}

Result<json::Value> HttpRoutes::workspace_entries(const Request& request) {
  const IndexStore store = service_.read_store(request.caller.tenant);
  cbor::Value params = params_of(
      request,
      {http::kEntriesQuery["path"], http::kEntriesQuery["scope"], http::kEntriesQuery["cursor"]});
  TRY(uint64_t limit, query_number(request, http::kEntriesQuery["limit"], 10'000));
  params.map().emplace_back("limit", limit);
  TRY(cbor::Value entries, Workspace(store).list(params));
  return plain_json(entries);
}

Result<json::Value> HttpRoutes::workspace_entry(const Request& request) {
  const IndexStore store = service_.read_store(request.caller.tenant);
  TRY(cbor::Value entry, Workspace(store).read_ref(params_of(request, {http::kPathQuery["path"]})));
  if (entry.is_null())
    return fail(Code::not_found, "not_found",
                "path not found: " + request.query_param(http::kPathQuery["path"]).value_or(""));
  return plain_json(entry);
}

Result<Bytes> HttpRoutes::file_bytes(const Request& request) const {
  const IndexStore store = service_.read_store(request.caller.tenant);
  cbor::Value params = params_of(request, {http::kPathQuery["path"]});
  TRY(std::optional<uint64_t> start, some_number(request, http::kBytesQuery["start"]));
  TRY(std::optional<uint64_t> end, some_number(request, http::kBytesQuery["end"]));
  if (start.has_value() != end.has_value()) return bad_request("a range wants both start and end");
  if (start) params.map().emplace_back("range", cbor::Map{{"start", *start}, {"end", *end}});
  TRY(cbor::Value bytes, Workspace(store).read_bytes(params));
  return bytes.bytes();
}

void HttpRoutes::workspace_bytes(Request request, Respond respond) {
  auto bytes = file_bytes(request);
  if (!bytes) return respond(refuse(bytes.error()));
  wire::Response out;
  out.headers = {{"Content-Type", "application/octet-stream"}};
  out.body = std::move(*bytes);
  respond(std::move(out));
}

Result<json::Value> HttpRoutes::workspace_annotations(const Request& request) {
  const IndexStore store = service_.read_store(request.caller.tenant);
  TRY(cbor::Value annotations,
      Workspace(store).annotations_get(params_of(request, {http::kPathQuery["path"]})));
  return plain_json(annotations);
}

Result<json::Value> HttpRoutes::workspace_diff(const Request& request) {
  TRY(wire::BodyReader body, body_of(request));
  const IndexStore store = service_.read_store(request.caller.tenant);
  TRY(cbor::Value changes, Workspace(store).diff(to_cbor(body.value())));
  return plain_json(changes);
}

// The program makes the roots, because writes to the store go through a turn.
void HttpRoutes::workspace_apply(Request request, Respond respond) {
  auto body = body_of(request);
  if (!body) return respond(refuse(body.error()));
  const bool fresh = request.params.empty();
  json::Object order;
  order.add("root_hash", fresh ? json::Value() : json::Value(request.params[0]));
  if (const json::Value* list = body->value().find(http::kApply["operations"]))
    order.add("operations", *list);
  else if (!fresh)
    return respond(
        refuse(bad_request("apply wants {\"operations\": [{\"op\": "
                           "\"write_bytes\"|\"write_ref\"|\"remove\"|\"set_annotations\", ...}]}")
                   .error()));
  service_.edit_workspace(request.caller, json::Value(std::move(order)),
                          answer_json(std::move(respond), fresh ? 201 : 200));
}

}  // namespace pawl::worlds

// Workspaces over HTTP: trees by their root, and the roots that a world has made versions.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/service.h"
#include "faces/worlds/store/workspace.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

// The query's words as the params of an effect.
cbor::Value params_of(const wire::Request& request, std::initializer_list<std::string_view> words) {
  cbor::Map out{{"root_hash", request.params.empty() ? std::string() : request.params[0]}};
  for (std::string_view word : words)
    if (auto given = request.query_param(word)) out.emplace_back(word, *given);
  return cbor::Value(std::move(out));
}

Result<std::optional<uint64_t>> some_number(const wire::Request& request, std::string_view name) {
  if (!request.query_param(name)) return std::optional<uint64_t>();
  TRY(uint64_t n, query_number(request, name, 0, UINT64_MAX));
  return std::optional<uint64_t>(n);
}

}  // namespace

IndexStore Service::store_of(const std::string& tenant) const {
  return {[this, tenant](BytesView digest) -> Result<Bytes> {
            TRY(Cell cell, kernel_.read(blob_key(tenant, digest)));
            if (!cell.exists())
              return fail(Code::not_found, "store.error",
                          "blob " + hash_text(digest) + " is not in the store");
            TRY(Blob blob, decode_blob(digest, cell.value()));
            return std::move(blob.bytes);
          },
          [](BytesView) -> Result<Bytes> {
            return fail(Code::internal, "store.error", "this store is read only");
          }};
}

Result<json::Value> Service::workspace_resolve(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  const std::string name = request.query_param("workspace").value_or("");
  TRY_OK(check_workspace_name(name));
  TRY(Cell cell, s.snapshot.read(
                     cell_key(s.world_id, kWorkspaceWorkflow, cbor::canonical(cbor::Value(name)))));
  std::optional<Bytes> history;
  if (cell.exists()) {
    TRY(Instance instance, decode_instance(cell.value()));
    history = std::move(instance.state);
  }
  TRY(std::optional<uint64_t> version, some_number(request, "version"));
  TRY(cbor::Value found, resolve_workspace(history, version));
  json::Object out;
  out.add("workspace", name);
  for (const auto& [key, value] : found.map())
    out.add(key.text(), plain_json(value));
  return json::Value(std::move(out));
}

Result<json::Value> Service::workspace_entries(const Request& request) {
  const IndexStore store = store_of(request.caller.tenant);
  cbor::Value params = params_of(request, {"path", "scope", "cursor"});
  TRY(uint64_t limit, query_number(request, "limit", 1000, 10'000));
  params.map().emplace_back("limit", limit);
  TRY(cbor::Value entries, Workspace(store).list(params));
  return plain_json(entries);
}

Result<json::Value> Service::workspace_entry(const Request& request) {
  const IndexStore store = store_of(request.caller.tenant);
  TRY(cbor::Value entry, Workspace(store).read_ref(params_of(request, {"path"})));
  if (entry.is_null())
    return fail(Code::not_found, "not_found",
                "path not found: " + request.query_param("path").value_or(""));
  return plain_json(entry);
}

Result<Bytes> Service::file_bytes(const Request& request) const {
  const IndexStore store = store_of(request.caller.tenant);
  cbor::Value params = params_of(request, {"path"});
  TRY(std::optional<uint64_t> start, some_number(request, "start"));
  TRY(std::optional<uint64_t> end, some_number(request, "end"));
  if (start.has_value() != end.has_value())
    return fail(Code::invalid, "invalid_request", "a range wants both start and end");
  if (start) params.map().emplace_back("range", cbor::Map{{"start", *start}, {"end", *end}});
  TRY(cbor::Value bytes, Workspace(store).read_bytes(params));
  return bytes.bytes();
}

void Service::workspace_bytes(Request request, Respond respond) {
  auto bytes = file_bytes(request);
  if (!bytes) return respond(refuse(bytes.error()));
  wire::Response out;
  out.headers = {{"Content-Type", "application/octet-stream"}};
  out.body = std::move(*bytes);
  respond(std::move(out));
}

Result<json::Value> Service::workspace_annotations(const Request& request) {
  const IndexStore store = store_of(request.caller.tenant);
  TRY(cbor::Value annotations, Workspace(store).annotations_get(params_of(request, {"path"})));
  return plain_json(annotations);
}

Result<json::Value> Service::workspace_diff(const Request& request) {
  TRY(json::Value body, body_of(request));
  const IndexStore store = store_of(request.caller.tenant);
  TRY(cbor::Value changes, Workspace(store).diff(to_cbor(body)));
  return plain_json(changes);
}

// Roots are made by the program: what is put into the store goes through a turn.
void Service::workspace_apply(Request request, Respond respond) {
  auto body = body_of(request);
  if (!body) return respond(refuse(body.error()));
  const bool fresh = request.params.empty();
  json::Object order;
  order.add("root_hash", fresh ? json::Value() : json::Value(request.params[0]));
  if (const json::Value* list = body->find("operations"))
    order.add("operations", *list);
  else if (!fresh)
    return respond(
        refuse({Code::invalid, "invalid_request",
                "apply wants {\"operations\": [{\"op\": "
                "\"write_bytes\"|\"write_ref\"|\"remove\"|\"set_annotations\", ...}]}"}));
  submit(request, "workspace", json::print(json::Value(std::move(order))),
         [this, fresh, respond = std::move(respond)](Result<Answer> answer) mutable {
           answer_json(std::move(respond), fresh ? 201 : 200, std::move(answer));
         });
}

}  // namespace pawl::worlds

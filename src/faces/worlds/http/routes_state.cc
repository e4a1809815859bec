// Cells and states of a world over HTTP, at the head or at a snapshot.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/fields.h"
#include "faces/worlds/http/http_routes.h"
#include "faces/worlds/http/pages.h"
#include "faces/worlds/http/peer_forms.h"
#include "faces/worlds/store/world_journal.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

constexpr uint64_t kMaxPage = 1000;

// The snapshot as a read-only index store.
IndexStore reading(const ReadSnapshot& snapshot, const std::string& tenant) {
  return {[&snapshot, tenant](BytesView digest) -> Result<Bytes> {
            TRY(Cell cell, snapshot.read(blob_key(tenant, digest)));
            if (!cell.exists())
              return fail(
                  Code::not_found, "store.error",
                  "missing_cas_dependency: blob " + hash_text(digest) + " is not in the store");
            TRY(Blob blob, decode_blob(digest, cell.value()));
            return std::move(blob.bytes);
          },
          [](BytesView) -> Result<Bytes> {
            return fail(Code::internal, "store.error", "this store is read only");
          }};
}

Result<Bytes> key_param(const wire::Request& request) {
  auto text = request.query_param(http::kStateQuery["key_b64"]);
  if (!text) return Bytes();
  return unbase64(*text);
}

}  // namespace

// The state at a snapshot comes from that snapshot's index.
static Result<std::optional<Bytes>> state_at(const ReadSnapshot& snapshot, const WorldId& world_id,
                                             uint64_t height, const std::string& workflow,
                                             BytesView key) {
  TRY(std::optional<Bytes> payload, record_at(snapshot, world_id, height));
  auto record = payload ? cbor::decode(*payload) : Result<cbor::Value>(cbor::Value());
  if (!record || record_kind(*record) != "snapshot") return no_such_height(height);
  return state_in_snapshot(reading(snapshot, world_id.tenant), record->text_or("snapshot_ref"),
                           workflow, key);
}

Result<json::Value> HttpRoutes::get_state(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  std::string workflow = request.params.at(1);
  if (workflow.ends_with("/cells"))
    return list_cells(s, request, workflow.substr(0, workflow.size() - 6));
  if (!s.loaded->workflow(workflow))
    return fail(Code::not_found, "not_found",
                "workflow '" + workflow + "' is not in the manifest of world '" + s.world.id + "'");
  TRY(Bytes key, key_param(request));
  TRY(Consistency wanted,
      parse_consistency(request.query_param(http::kStateQuery["consistency"]).value_or("")));
  TRY(bool at_head, head_serves(wanted, s.world.id, s.head.height));
  json::Object out;
  out.add("journal_head", s.head.height);
  out.add("workflow", workflow);
  out.add("key_b64", base64(key));
  std::optional<Bytes> state;
  if (!at_head) {
    TRY(state, state_at(s.snapshot, s.world_id, wanted.height, workflow, key));
  } else {
    TRY(Cell cell, s.snapshot.read(cell_key(s.world_id, workflow, key)));
    if (cell.exists()) {
      TRY(Instance instance, decode_instance(cell.value()));
      state = instance.state;
      out.add("status", json::Value(name_of(instance.status)));
      out.add("last_processed_event_seq", instance.last_seq);
      out.add("module_version", instance.module_version);
      if (!instance.failure.empty()) out.add("failure", instance.failure);
      if (instance.state) out.add("cell", cell_json(s.head, workflow, key, instance));
    }
  }
  out.add("exists", state.has_value());
  out.add("state_b64", state ? json::Value(base64(*state)) : json::Value());
  out.add("state", bytes_json(state));
  out.add("state_hash", state ? json::Value(hash_text(sha256(*state))) : json::Value());
  out.add("size", state ? json::Value(uint64_t{state->size()}) : json::Value());
  out.add("meta", meta_json(s.world, s.head));
  return json::Value(std::move(out));
}

Result<json::Value> HttpRoutes::list_cells(const WorldSnapshot& s, const Request& request,
                                           const std::string& workflow) {
  if (!s.loaded->workflow(workflow))
    return fail(Code::not_found, "not_found",
                "workflow '" + workflow + "' is not in the manifest of world '" + s.world.id + "'");
  TRY(uint64_t limit, query_number(request, http::kStateQuery["limit"], kMaxPage));
  limit = std::max<uint64_t>(1, limit);
  TRY(Bytes lead, unbase64(request.query_param(http::kStateQuery["prefix_b64"]).value_or("")));
  TRY(Bytes after, unbase64(request.query_param(http::kStateQuery["after_b64"]).value_or("")));
  const Key base = cells_prefix(s.world_id, workflow);
  json::Array cells;
  std::string next;
  TRY_OK(s.snapshot.scan(
      base + lead,
      [&](BytesView at, const Cell& cell) {
        const Bytes key(at.substr(base.size()));
        auto instance = decode_instance(cell.value());
        if (!instance || !instance->state || (!after.empty() && key <= after)) return true;
        if (cells.size() == limit) {
          next = cells.back().string_or("key_b64");
          return false;
        }
        cells.push_back(cell_json(s.head, workflow, key, *instance));
        return true;
      },
      after.empty() ? Key() : base + after));
  json::Object out;
  out.add("journal_head", s.head.height);
  out.add("workflow", workflow);
  out.add("cells", json::Value(std::move(cells)));
  if (!next.empty()) out.add("next_after_b64", next);
  if (auto roots = s.world.roots.find(workflow);
      roots != s.world.roots.end() && !roots->second.cells.empty())
    out.add("cell_index_root", hash_text(roots->second.cells));
  out.add("meta", meta_json(s.world, s.head));
  return json::Value(std::move(out));
}

Result<json::Value> HttpRoutes::journal_head(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  return json::object({{"journal_head", s.head.height},
                       {"next_seq", s.head.height},
                       {"retained_from", s.world.retained_from},
                       {"manifest_hash", s.world.manifest_hash},
                       {"meta", meta_json(s.world, s.head)}});
}

}  // namespace pawl::worlds

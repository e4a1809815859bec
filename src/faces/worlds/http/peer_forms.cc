#include "faces/worlds/http/peer_forms.h"

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/pages.h"
#include "faces/worlds/store/records.h"
#include "faces/worlds/store/world_journal.h"

namespace pawl::worlds {
json::Value payload_envelope(BytesView cbor) {
  return json::object({{"inline_cbor", octets_json(cbor)}});
}

json::Value runtime_json(const World& w, const WorldHead& h) {
  return json::object({{"world_id", w.id},
                       {"universe_id", kUniverse},
                       {"created_at_ns", static_cast<int64_t>(w.created)},
                       {"manifest_hash", w.manifest_hash},
                       {"active_baseline_height", w.snapshot_height},
                       {"notify_counter", h.height},
                       {"has_pending_inbox", h.queued > 0},
                       {"has_pending_effects", h.inflight > 0},
                       {"has_pending_maintenance", false}});
}

Result<json::Value> baseline_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                  const World& w) {
  TRY(std::optional<Bytes> payload, record_at(snapshot, world_id, w.snapshot_height));
  auto record = payload ? cbor::decode(*payload) : Result<cbor::Value>(cbor::Value());
  const cbor::Value* logical = record ? record->find("logical_time_ns") : nullptr;
  return json::object(
      {{"snapshot_ref", w.snapshot_ref},
       {"height", w.snapshot_height},
       {"universe_id", kUniverse},
       {"logical_time_ns", logical ? plain_json(*logical) : json::Value(uint64_t{0})},
       {"receipt_horizon_height", w.snapshot_height},
       {"manifest_hash", record ? json::Value(record->text_or("manifest_hash", w.manifest_hash))
                                : json::Value(w.manifest_hash)}});
}

json::Value summary_json(const Manifest& m) {
  json::Array routes;
  for (const Subscription& s : m.subscriptions) {
    json::Object route;
    route.add("event", s.event);
    route.add("workflow", s.workflow);
    if (s.key_field) route.add("key_field", *s.key_field);
    routes.push_back(json::Value(std::move(route)));
  }
  return json::object({{"schema_count", uint64_t{m.schemas.size()}},
                       {"module_count", uint64_t{m.modules.size()}},
                       {"workflow_count", uint64_t{m.workflows.size()}},
                       {"effect_count", uint64_t{m.effects.size()}},
                       {"secret_count", uint64_t{m.secrets.size()}},
                       {"routing_subscription_count", uint64_t{m.subscriptions.size()}},
                       {"routes", json::Value(std::move(routes))}});
}

json::Value cell_json(const WorldHead& head, const std::string& workflow, BytesView key,
                      const Instance& i) {
  return json::object({{"journal_head", head.height},
                       {"workflow", workflow},
                       {"key_b64", base64(key)},
                       {"key", bytes_json(Bytes(key))},
                       {"key_hash", octets_json(view(sha256(key)))},
                       {"key_bytes", octets_json(key)},
                       {"state_hash", hash_text(sha256(*i.state))},
                       {"size", uint64_t{i.state->size()}},
                       {"last_active_ns", i.last_seq},
                       {"status", name_of(i.status)},
                       {"inflight_intents", uint64_t{i.inflight.size()}}});
}

}  // namespace pawl::worlds

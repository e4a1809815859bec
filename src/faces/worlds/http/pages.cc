#include "faces/worlds/http/pages.h"

#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {

json::Value bytes_json(const std::optional<Bytes>& value) {
  if (!value) return {};
  auto decoded = cbor::decode(*value);
  return decoded ? plain_json(*decoded) : json::Value();
}

json::Value quiescence_json(const WorldHead& h) {
  return json::object(
      {{"non_terminal_workflow_instances", h.running + h.waiting},
       {"inflight_workflow_intents", h.inflight},
       {"pending_workflow_receipts", h.inflight},
       {"queued_effects", uint64_t{0}},
       {"workflow_queue_pending", h.queued > 0},
       {"mailbox_len", h.queued},
       {"scheduled_timers", h.timers},
       {"runtime_quiescent", h.inflight == 0 && h.queued == 0},
       {"strictly_quiescent", h.running + h.waiting == 0 && h.inflight == 0 && h.queued == 0}});
}

static uint64_t last_stream_seq(const ReadSnapshot& snapshot, const WorldId& world_id,
                                const PendingIntent& intent) {
  auto cell = snapshot.read(cell_key(world_id, intent.workflow, intent.key));
  auto instance =
      cell && cell->exists() ? decode_instance(cell->value()) : Result<Instance>(Instance{});
  if (!instance) return 0;
  for (const InflightIntent& open : instance->inflight)
    if (open.intent == intent.intent) return open.last_stream_seq;
  return 0;
}

json::Value meta_json(const World& w, const WorldHead& h) {
  return json::object({{"journal_height", h.height},
                       {"manifest_hash", w.manifest_hash},
                       {"snapshot_hash", w.snapshot_ref},
                       {"active_baseline_height", w.snapshot_height},
                       {"active_baseline_receipt_horizon_height", w.snapshot_height}});
}

Result<json::Array> pending_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                 const WorldHead& head, size_t limit) {
  json::Array out;
  TRY_OK(snapshot.scan(pending_prefix(world_id), [&](BytesView, const Cell& cell) {
    auto i = decode_pending(cell.value());
    if (!i || out.size() >= limit) return out.size() < limit;
    json::Object item;
    item.add("intent_hash", hash_text(i->intent));
    item.add("instance_id", instance_id(i->workflow, i->key));
    item.add("origin_module_id", i->workflow);
    if (i->keyed) item.add("origin_instance_key_b64", base64(i->key));
    item.add("effect", i->identity.effect);
    item.add("emitted_at_seq", i->emitted_at_seq);
    item.add("last_stream_seq", last_stream_seq(snapshot, world_id, *i));
    item.add("age_events", head.height - i->emitted_at_seq);
    item.add("params", bytes_json(i->params));
    out.push_back(json::Value(std::move(item)));
    return true;
  }));
  return out;
}

Result<json::Array> instances_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                   const WorldHead& head, size_t limit) {
  json::Array out;
  TRY_OK(snapshot.scan(cells_prefix(world_id), [&](BytesView at, const Cell& cell) {
    auto i = decode_instance(cell.value());
    if (!i || out.size() >= limit) return out.size() < limit;
    const CellAt where = cell_at(world_id, at);
    json::Array inflight;
    for (const InflightIntent& open : i->inflight)
      inflight.push_back(
          json::object({{"intent_hash", hash_text(open.intent)},
                        {"origin_module_id", where.workflow},
                        {"origin_instance_key_b64",
                         where.key.empty() ? json::Value() : json::Value(base64(where.key))},
                        {"effect", open.effect},
                        {"emitted_at_seq", open.emitted_at_seq},
                        {"last_stream_seq", open.last_stream_seq},
                        {"age_events", head.height - open.emitted_at_seq}}));
    json::Object item;
    item.add("instance_id", instance_id(where.workflow, where.key));
    item.add("status", json::Value(name_of(i->status)));
    item.add("last_processed_event_seq", i->last_seq);
    item.add("module_version", i->module_version);
    item.add("inflight_intents", json::Value(std::move(inflight)));
    if (!i->failure.empty()) item.add("failure", i->failure);
    out.push_back(json::Value(std::move(item)));
    return true;
  }));
  return out;
}

}  // namespace pawl::worlds

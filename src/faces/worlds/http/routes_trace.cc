// Why a world is as it is: the records that follow from one event, what it waits for, and a
// diagnosis.

#include <algorithm>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/peer_forms.h"
#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

constexpr uint64_t kWindow = 400, kMaxWindow = 10'000;
constexpr size_t kWaits = 100;
constexpr size_t kSearched = 100'000;  // records looked at for a correlation

struct Window {
  std::optional<Key> cell{};  // the one whose timeline it is
  std::optional<uint64_t> root;
  std::vector<std::pair<uint64_t, Bytes>> entries;
  size_t bytes = 0;
  // False when it is full.
  bool add(uint64_t seq, BytesView payload, uint64_t limit) {
    entries.emplace_back(seq, payload);
    bytes += payload.size();
    return entries.size() < limit && bytes < kShownBytes;
  }
};

// "a.b" in a JSON value, as text or number.
bool path_is(const json::Value& value, const std::vector<std::string>& path,
             const std::string& wanted) {
  const json::Value* at = &value;
  for (const std::string& part : path) {
    const json::Value* next = at->find(part);
    if (!next && part != "$value") {  // paths may leave the wrapping out
      const json::Value* inner = at->find("$value");
      next = inner ? inner->find(part) : nullptr;
    }
    if (!next) return false;
    at = next;
  }
  if (at->is_string()) return at->string() == wanted;
  return json::print(*at) == wanted;
}

Result<std::optional<uint64_t>> first_event(const ReadSnapshot& snapshot, const WorldId& world_id,
                                            std::string_view hash, uint64_t from) {
  std::vector<uint64_t> seqs;
  TRY(Bytes digest, parse_hash(hash));
  TRY_OK(scan_pointers(snapshot, world_id, "e", digest_lead(digest), [&](uint64_t at) {
    if (at >= from) seqs.push_back(at);
    return seqs.size() < kWindow;  // of equal events any of the first will do
  }));
  for (uint64_t seq : seqs) {
    TRY(std::optional<Bytes> payload, record_at(snapshot, world_id, seq));
    auto record = payload ? cbor::decode(*payload) : Result<cbor::Value>(cbor::Value());
    if (record && record->text_or("event_hash") == hash) return std::optional(seq);
  }
  return std::optional<uint64_t>();
}

// The last event of the schema whose value has `wanted` at the path.
Result<std::optional<uint64_t>> correlated(const ReadSnapshot& snapshot, const WorldId& world_id,
                                           const std::string& schema, const std::string& path,
                                           const std::string& wanted) {
  std::optional<uint64_t> seq;
  size_t seen = 0;
  const auto parts = key_path(path);
  TRY_OK(scan_records_back(snapshot, world_id, [&](uint64_t at, BytesView payload) {
    auto record = cbor::decode(payload);
    if (record && record_kind(*record) == "domain_event" && record->text_or("schema") == schema) {
      const cbor::Value* value = record->find("value");
      auto inner = value && value->is_bytes() ? cbor::decode(value->bytes())
                                              : Result<cbor::Value>(cbor::Value());
      if (inner && path_is(plain_json(*inner), parts, wanted)) seq = at;
    }
    return !seq && ++seen < kSearched;
  }));
  return seq;
}

Result<void> fill_from_root(const ReadSnapshot& snapshot, const WorldId& world_id, Window& window,
                            uint64_t limit) {
  return scan_records(snapshot, world_id, *window.root, [&](uint64_t seq, BytesView payload) {
    return window.add(seq, payload, limit);
  });
}

// A cell's own timeline: the newest of it. Pointers outlive the records that are compacted away.
Result<void> fill_from_cell(const ReadSnapshot& snapshot, const WorldId& world_id,
                            const Bytes& cell, uint64_t retained, Window& window, uint64_t limit) {
  std::vector<uint64_t> seqs;
  TRY_OK(scan_pointers_back(snapshot, world_id, "c", cell, [&](uint64_t seq) {
    if (seq >= retained) seqs.push_back(seq);
    return seq >= retained && seqs.size() < limit;
  }));
  for (uint64_t seq : seqs) {
    TRY(std::optional<Bytes> payload, record_at(snapshot, world_id, seq));
    if (payload && !window.add(seq, *payload, limit)) break;
  }
  std::reverse(window.entries.begin(), window.entries.end());
  if (!window.entries.empty()) window.root = window.entries.front().first;
  return {};
}

struct Found {
  bool error = false, timeout = false, failed_step = false, fault = false;
};

Found look_for_failures(const Window& window) {
  Found out;
  for (const auto& [seq, payload] : window.entries) {
    auto record = cbor::decode(payload);
    if (!record) continue;
    const std::string_view kind = record_kind(*record);
    if (kind == "effect_receipt" && record->text_or("status") == "error") out.error = true;
    if (kind == "effect_receipt" && record->text_or("status") == "timeout") out.timeout = true;
    if (kind == "step_failed") out.failed_step = true;
    if (kind == "custom" && record->text_or("tag") == "workflow.receipt_fault") out.fault = true;
  }
  return out;
}

Result<Window> window_of(const wire::Request& request, const ReadSnapshot& snapshot,
                         const WorldId& world_id, uint64_t retained) {
  Window window;
  TRY(uint64_t limit, query_number(request, "window_limit", kWindow, kMaxWindow));
  limit = std::max<uint64_t>(1, limit);
  auto hash = request.query_param("event_hash");
  auto workflow = request.query_param("workflow");
  if (hash) {
    TRY(window.root, first_event(snapshot, world_id, *hash, retained));
    if (!window.root)
      return fail(Code::not_found, "not_found",
                  "no event with hash " + *hash + " is in the journal");
    TRY_OK(fill_from_root(snapshot, world_id, window, limit));
  } else if (workflow) {
    TRY(Bytes key, unbase64(request.query_param("key_b64").value_or("")));
    TRY_OK(fill_from_cell(snapshot, world_id, cell_name(*workflow, key), retained, window, limit));
    window.cell = cell_key(world_id, *workflow, key);
    if (!window.root)
      return fail(Code::not_found, "not_found",
                  "no record names the cell " + instance_id(*workflow, key));
  } else {
    auto schema = request.query_param("schema"), path = request.query_param("correlate_by"),
         value = request.query_param("value");
    if (!schema || !path || !value)
      return fail(Code::invalid, "invalid_request",
                  "trace by event_hash, by schema with correlate_by and value, or by workflow with "
                  "key_b64");
    TRY(window.root, correlated(snapshot, world_id, *schema, *path, *value));
    if (!window.root)
      return fail(Code::not_found, "not_found",
                  "no event of schema '" + *schema + "' has '" + *value + "' at '" + *path + "'");
    TRY_OK(fill_from_root(snapshot, world_id, window, limit));
  }
  return window;
}

// What a trace waits for: of a cell's timeline the cell, else the world.
Result<std::string_view> terminal_state(const ReadSnapshot& snapshot, const Window& window,
                                        const Found& found, const WorldHead& head) {
  if (found.error || found.timeout || found.failed_step || found.fault) return "failed";
  uint64_t inflight = head.inflight, open = head.running + head.waiting;
  if (window.cell) {
    TRY(Cell cell, snapshot.read(*window.cell));
    auto instance = cell.exists() ? decode_instance(cell.value()) : Result<Instance>(Instance{});
    if (!instance) return fail(std::move(instance.error()));
    inflight = instance->inflight.size();
    open = cell.exists() && (instance->status == InstanceStatus::running ||
                             instance->status == InstanceStatus::waiting);
  }
  return inflight > 0 ? "waiting_receipt" : open > 0 ? "waiting_event" : "completed";
}

// What was asked for; null is what was not.
json::Value query_json(const wire::Request& request) {
  json::Object out;
  for (const char* name :
       {"event_hash", "schema", "correlate_by", "value", "workflow", "key_b64"}) {
    auto given = request.query_param(name);
    out.add(name, given ? json::Value(*given) : json::Value());
  }
  auto limit = query_number(request, "window_limit", kWindow, kMaxWindow);
  out.add("window_limit", limit.value_or(kWindow));
  return json::Value(std::move(out));
}

// The event that all of it follows from, in short; null when the timeline begins with something
// else.
json::Value root_json(const json::Value& entry) {
  const json::Value* record = entry.find("record");
  if (!record || entry.string_or("kind") != "domain_event") return {};
  const json::Value* value = record->find("value_json");
  auto key = bytes_field(*record, "key");
  return json::object({{"seq", *entry.find("seq")},
                       {"schema", record->string_or("schema")},
                       {"event_hash", record->string_or("event_hash")},
                       {"key_b64", key && *key ? json::Value(base64(**key)) : json::Value()},
                       {"value", value ? *value : json::Value()}});
}

// With the intents that may still stream.
json::Value strict_json(const WorldHead& head, const json::Array& pending) {
  json::Value out = quiescence_json(head);
  json::Array open;
  for (const json::Value& intent : pending) {
    json::Object item;
    for (const char* name : {"instance_id", "intent_hash", "effect", "emitted_at_seq",
                             "last_stream_seq", "age_events"})
      item.add(name, *intent.find(name));
    open.push_back(json::Value(std::move(item)));
  }
  out.object().add("open_streaming_intents", json::Value(std::move(open)));
  return out;
}

}  // namespace

Result<json::Value> Service::trace(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  TRY(Window window, window_of(request, s.snapshot, s.world_id, s.world.retained_from));
  json::Array entries;
  json::Value root;
  for (const auto& [seq, payload] : window.entries) {
    entries.push_back(record_json(seq, payload));
    if (seq == *window.root) root = entries.back();
  }
  TRY(json::Array pending, pending_json(s.snapshot, s.world_id, s.head, kWaits));
  TRY(json::Array instances, instances_json(s.snapshot, s.world_id, s.head, kWaits));
  TRY(std::string_view state,
      terminal_state(s.snapshot, window, look_for_failures(window), s.head));
  json::Value strict = strict_json(s.head, pending);
  const uint64_t to = window.entries.empty() ? *window.root : window.entries.back().first;
  return json::object(
      {{"query", query_json(request)},
       {"root", root_json(root)},
       {"root_event", root},
       {"terminal_state", state},
       {"meta", meta_json(s.world, s.head)},
       {"journal_bounds",
        json::object({{"retained_from", s.world.retained_from}, {"next_seq", s.head.height}})},
       {"journal_window", json::object({{"from_seq", *window.root},
                                        {"to_seq", to},
                                        {"retained_from", s.world.retained_from},
                                        {"entries", json::Value(std::move(entries))}})},
       {"live_wait", json::object({{"pending_workflow_receipts", json::Value(std::move(pending))},
                                   {"workflow_instances", json::Value(std::move(instances))},
                                   {"queued_effects", json::Value(json::Array{})},
                                   {"strict_quiescence", std::move(strict)}})}});
}

Result<json::Value> Service::trace_summary(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  const WorldHead& h = s.head;
  TRY(uint64_t limit, query_number(request, "recent_limit", kWaits, 1000));
  TRY(json::Array pending, pending_json(s.snapshot, s.world_id, h, limit));
  return json::object(
      {{"totals",
        json::object(
            {{"events", h.events},
             {"steps", h.steps},
             {"steps_failed", h.steps_failed},
             {"effects",
              json::object({{"intents", h.intents},
                            {"stream_frames", h.frames},
                            {"receipts", json::object({{"ok", h.receipts_ok},
                                                       {"error", h.receipts_error},
                                                       {"timeout", h.receipts_timeout}})}})},
             {"governance", json::object({{"proposed", h.proposed},
                                          {"shadowed", h.shadowed},
                                          {"approved", h.approved},
                                          {"applied", h.applied}})},
             {"workflows", json::object({{"total", h.running + h.waiting + h.completed + h.failed},
                                         {"running", h.running},
                                         {"waiting", h.waiting},
                                         {"completed", h.completed},
                                         {"failed", h.failed},
                                         {"inflight_intents", h.inflight}})}})},
       {"continuations", json::Value(std::move(pending))},
       {"adapter_routes", json::Value()},
       {"runtime_wait",
        json::object({{"pending_workflow_receipts", h.inflight}, {"queued_effects", uint64_t{0}}})},
       {"strict_quiescence", quiescence_json(h)},
       {"journal_bounds",
        json::object({{"retained_from", s.world.retained_from}, {"next_seq", h.height}})}});
}

Result<json::Value> Service::diagnose(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  TRY(Window window, window_of(request, s.snapshot, s.world_id, s.world.retained_from));
  const Found found = look_for_failures(window);
  static constexpr struct {
    std::string_view cause, hint;
  } kCauses[] = {
      {"adapter_timeout",
       "an executor answered 'timeout': see whether it runs, and whether the workflow retries"},
      {"adapter_error", "an executor answered 'error': its payload says why"},
      {"invariant_violation",
       "a step failed or a receipt did not fit: see the step_failed and workflow.receipt_fault "
       "records"},
      {"waiting_receipt",
       "an effect is open: see pending_workflow_receipts, and whether its executor polls"},
      {"waiting_event", "nothing is open: the world waits for its next event"},
      {"completed", "every instance is done"},
  };
  TRY(std::string_view state, terminal_state(s.snapshot, window, found, s.head));
  size_t cause = found.timeout                ? 0
                 : found.error                ? 1
                 : state == "failed"          ? 2
                 : state == "waiting_receipt" ? 3
                 : state == "waiting_event"   ? 4
                                              : 5;
  return json::object({{"terminal_state", state},
                       {"cause", kCauses[cause].cause},
                       {"hint", kCauses[cause].hint},
                       {"root_seq", *window.root},
                       {"records_seen", uint64_t{window.entries.size()}},
                       {"strict_quiescence", quiescence_json(s.head)}});
}

}  // namespace pawl::worlds

// Traces over HTTP: the records that follow from an event, what the world waits for, and a
// diagnosis.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/fields.h"
#include "faces/worlds/http/http_routes.h"
#include "faces/worlds/http/pages.h"
#include "faces/worlds/service/trace.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

constexpr size_t kMaxWaits = 100;  // open intents and instances that are shown

Result<uint64_t> window_of(const wire::Request& request) {
  const wire::Member& row = http::kTraceQuery["window_limit"];
  if (!request.query_param(row)) return kDefaultWindow;
  return query_number(request, row, kMaxWindow);
}

Result<TraceQuery> query_of(const wire::Request& request) {
  TraceQuery out;
  TRY(out.limit, window_of(request));
  out.limit = std::max<uint64_t>(1, out.limit);
  out.event_hash = request.query_param(http::kTraceQuery["event_hash"]);
  out.workflow = request.query_param(http::kTraceQuery["workflow"]);
  if (!out.event_hash && out.workflow) {
    TRY(out.key, unbase64(request.query_param(http::kTraceQuery["key_b64"]).value_or("")));
  }
  out.schema = request.query_param(http::kTraceQuery["schema"]);
  out.correlate_by = request.query_param(http::kTraceQuery["correlate_by"]);
  out.value = request.query_param(http::kTraceQuery["value"]);
  return out;
}

// The query; members that were not given are null.
json::Value query_json(const wire::Request& request) {
  json::Object out;
  for (const wire::Member& row : http::kTraceQuery) {
    auto given = request.query_param(row);
    out.add(std::string(row.name), given ? json::Value(*given) : json::Value());
  }
  out.set(std::string(http::kTraceQuery["window_limit"].name),
          window_of(request).value_or(kDefaultWindow));
  return json::Value(std::move(out));
}

// A summary of the event that the trace begins with; null when it begins with another record.
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

// Quiescence, with the intents that may still send stream frames.
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

Result<json::Value> HttpRoutes::trace(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  TRY(TraceQuery query, query_of(request));
  TRY(TraceWindow window, find_window(s, query));
  json::Array entries;
  json::Value root;
  for (const auto& [seq, payload] : window.entries) {
    entries.push_back(record_json(seq, payload));
    if (seq == *window.root) root = entries.back();
  }
  TRY(json::Array pending, pending_json(s.snapshot, s.world_id, s.head, kMaxWaits));
  TRY(json::Array instances, instances_json(s.snapshot, s.world_id, s.head, kMaxWaits));
  TRY(std::string_view state, terminal_state(s, window, failures_in(window)));
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

Result<json::Value> HttpRoutes::trace_summary(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  const WorldHead& h = s.head;
  TRY(uint64_t limit, query_number(request, http::kSummaryQuery["recent_limit"], 1000));
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

Result<json::Value> HttpRoutes::diagnose(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  TRY(TraceQuery query, query_of(request));
  TRY(TraceWindow window, find_window(s, query));
  const TraceFailures found = failures_in(window);
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
  TRY(std::string_view state, terminal_state(s, window, found));
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

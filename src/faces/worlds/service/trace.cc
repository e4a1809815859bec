#include "faces/worlds/service/trace.h"

#include <algorithm>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/service/json_fields.h"
#include "faces/worlds/store/world_journal.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

constexpr size_t kMaxSearched = 100'000;  // records that are read to find a correlation

// True when the value at the path is `wanted`, as text or as a number.
bool path_is(const json::Value& value, const std::vector<std::string>& path,
             const std::string& wanted) {
  const json::Value* at = &value;
  for (const std::string& part : path) {
    const json::Value* next = at->find(part);
    if (!next && part != "$value") {  // paths may leave out the variant
      const json::Value* inner = at->find("$value");
      next = inner ? inner->find(part) : nullptr;
    }
    if (!next) return false;
    at = next;
  }
  if (at->is_string()) return at->string() == wanted;
  return json::print(*at) == wanted;
}

// Pointers hold eight bytes of the digest, so the records decide. Pointers before `from` lead to
// records that were compacted away.
Result<std::optional<uint64_t>> first_event(const ReadSnapshot& snapshot, const WorldId& world_id,
                                            std::string_view hash, uint64_t from) {
  std::vector<uint64_t> seqs;
  TRY(Bytes digest, parse_hash(hash));
  TRY_OK(scan_pointers(snapshot, world_id, "e", digest_lead(digest), [&](uint64_t at) {
    if (at >= from) seqs.push_back(at);
    return seqs.size() < kDefaultWindow;  // of equal events the first ones are enough
  }));
  for (uint64_t seq : seqs) {
    TRY(std::optional<Bytes> payload, record_at(snapshot, world_id, seq));
    auto record = payload ? cbor::decode(*payload) : Result<cbor::Value>(cbor::Value());
    if (record && record->text_or("event_hash") == hash) return std::optional(seq);
  }
  return std::optional<uint64_t>();
}

// The last event of the schema whose value has `wanted` at the path.
// Reads backwards and decodes every record, because values have no index: hence the limit.
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
    return !seq && ++seen < kMaxSearched;
  }));
  return seq;
}

// Everything that the world recorded from the root on, also what other inputs caused meanwhile.
Result<void> fill_from_root(const ReadSnapshot& snapshot, const WorldId& world_id,
                            TraceWindow& window, uint64_t limit) {
  return scan_records(snapshot, world_id, *window.root, [&](uint64_t seq, BytesView payload) {
    return window.add(seq, payload, limit);
  });
}

// The newest records of one cell. Pointers stay when their records are compacted away.
Result<void> fill_from_cell(const ReadSnapshot& snapshot, const WorldId& world_id,
                            const Bytes& cell, uint64_t retained, TraceWindow& window,
                            uint64_t limit) {
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

Result<TraceWindow> window_of_event(const WorldSnapshot& world, const TraceQuery& query) {
  TraceWindow out;
  TRY(out.root,
      first_event(world.snapshot, world.world_id, *query.event_hash, world.world.retained_from));
  if (!out.root)
    return fail(Code::not_found, "not_found",
                "no event with hash " + *query.event_hash + " is in the journal");
  TRY_OK(fill_from_root(world.snapshot, world.world_id, out, query.limit));
  return out;
}

// The newest records of the cell, in the order in which they were made.
Result<TraceWindow> window_of_cell(const WorldSnapshot& world, const TraceQuery& query) {
  TraceWindow out;
  TRY_OK(fill_from_cell(world.snapshot, world.world_id, cell_name(*query.workflow, query.key),
                        world.world.retained_from, out, query.limit));
  out.cell = cell_key(world.world_id, *query.workflow, query.key);
  if (!out.root)
    return fail(Code::not_found, "not_found",
                "no record names the cell " + instance_id(*query.workflow, query.key));
  return out;
}

Result<TraceWindow> window_of_value(const WorldSnapshot& world, const TraceQuery& query) {
  TraceWindow out;
  TRY(out.root,
      correlated(world.snapshot, world.world_id, *query.schema, *query.correlate_by, *query.value));
  if (!out.root)
    return fail(Code::not_found, "not_found",
                "no event of schema '" + *query.schema + "' has '" + *query.value + "' at '" +
                    *query.correlate_by + "'");
  TRY_OK(fill_from_root(world.snapshot, world.world_id, out, query.limit));
  return out;
}

}  // namespace

bool TraceWindow::add(uint64_t seq, BytesView payload, uint64_t limit) {
  entries.emplace_back(seq, payload);
  bytes += payload.size();
  return entries.size() < limit && bytes < kShownBytes;
}

Result<TraceWindow> find_window(const WorldSnapshot& world, const TraceQuery& query) {
  if (query.event_hash) return window_of_event(world, query);
  if (query.workflow) return window_of_cell(world, query);
  if (query.schema && query.correlate_by && query.value) return window_of_value(world, query);
  return bad_request(
      "trace by event_hash, by schema with correlate_by and value, or by workflow with key_b64");
}

TraceFailures failures_in(const TraceWindow& window) {
  TraceFailures out;
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

Result<std::string_view> terminal_state(const WorldSnapshot& world, const TraceWindow& window,
                                        const TraceFailures& found) {
  if (found.error || found.timeout || found.failed_step || found.fault) return "failed";
  // For an event the whole world decides: other cells may still work on what it started.
  uint64_t inflight = world.head.inflight, open = world.head.running + world.head.waiting;
  if (window.cell) {
    TRY(Cell cell, world.snapshot.read(*window.cell));
    auto instance = cell.exists() ? decode_instance(cell.value()) : Result<Instance>(Instance{});
    if (!instance) return fail(std::move(instance.error()));
    inflight = instance->inflight.size();
    open = cell.exists() && (instance->status == InstanceStatus::running ||
                             instance->status == InstanceStatus::waiting);
  }
  return inflight > 0 ? "waiting_receipt" : open > 0 ? "waiting_event" : "completed";
}

}  // namespace pawl::worlds

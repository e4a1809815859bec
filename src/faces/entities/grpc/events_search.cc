#include <fmt/format.h>

#include "faces/entities/grpc/exchange.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

// Events that read: entities, searches, snapshots, counts, changes.

namespace pawl::entities {

namespace {

void append_payload(std::string& out, const EntityView& e) {
  out += R"(,"payload":{"type":"JSON","data":)";
  out += e.data;
  out += ",\"meta\":";
  append_meta(out, e, true);
  out += '}';
}

// An envelope differs from a payload only in its type.
std::string payload_of(std::string_view envelope) {
  static constexpr std::string_view kHead = R"({"type":"ENTITY")";
  std::string out = R"(,"payload":{"type":"JSON")";
  out += envelope.substr(kHead.size());
  return out;
}

// find_in_transaction() answers with one envelope a line.
void reply_lines(GrpcExchange& e, std::string_view lines) {
  while (!lines.empty()) {
    size_t end = lines.find('\n');
    e.reply(payload_of(lines.substr(0, end)));
    lines = end == lines.npos ? std::string_view() : lines.substr(end + 1);
  }
}

// A result larger than this is not kept: the rest is read again while the client reads.
constexpr size_t kKeptBytes = 256 * 1024;

// The part of a result that is not kept: its entities are read from the snapshot of the search, one
// when the client has room for it.
struct RestOfResult {
  GrpcExchangePtr exchange;
  StreamSlots::SlotPtr slot;
  ReadSnapshot snapshot;
  std::optional<Seq> seq;
  std::vector<std::string> ids;
  size_t next = 0;

  std::optional<ReplyEvent> operator()() {
    if (next == ids.size()) return std::nullopt;
    const std::string& id = ids[next++];
    const Key key = entity_key(exchange->tenant(), id);
    auto cell = seq ? snapshot.read_at(key, *seq) : snapshot.read(key);
    EntityView view;
    if (cell && view_entity(cell->value(), view)) {
      std::string more;
      append_payload(more, view);
      return exchange->success(more);
    }
    next = ids.size();  // a failed reply is the last one
    return exchange->failure(cell ? unreadable_entity(id) : cell.error());
  }
};

Result<void> answer_search(const GrpcExchangePtr& e, Query query) {
  ReadSnapshot snapshot = e->service().kernel().snapshot();
  if (query.at) {
    TRY(query.seq, snapshot.seq_at(*query.at));
    query.at.reset();
  }
  TRY(ModelPtr known, e->service().model(query.tenant, query.model, query.version));
  std::vector<std::string> kept, ids;
  size_t bytes = 0;
  TRY_OK(search(snapshot, query, known.get(), [&](const EntityView& view) {
    if (bytes >= kKeptBytes) {
      ids.emplace_back(view.id);
      return true;
    }
    append_payload(kept.emplace_back(), view);
    bytes += kept.back().size();
    return true;
  }));
  GrpcExchange::More rest;
  if (!ids.empty()) {
    TRY(StreamSlots::SlotPtr slot, e->face.stream_slots().take(query.tenant));
    rest = RestOfResult{e, std::move(slot), std::move(snapshot), query.seq, std::move(ids)};
  }
  for (const std::string& more : kept)
    e->reply(more);
  e->finish(std::move(rest));
  return {};
}

Result<void> in_background(const GrpcExchangePtr& e, Query query) {
  return e->service().run_query(std::move(query), e->left, [e](const Query& limited) {
    if (auto done = answer_search(e, limited); !done) e->refuse(done.error());
  });
}

void find_in_transaction(const GrpcExchangePtr& e, Query query, const json::Value* condition) {
  query.with_model = true;
  e->service().find_in_transaction(e->context, query, condition, [e](Result<Bytes> a) {
    if (!a) return e->refuse(a.error());
    reply_lines(*e, *a);
    e->finish();
  });
}

// [{"path": "$.n", "source": "data" or "meta", "desc": true}]
Result<std::vector<std::string>> order_of(const GrpcExchange& e) {
  std::vector<std::string> out;
  const json::Value* list = e.payload.find("orderBy");
  if (!list || list->is_null()) return out;
  if (!list->is_array()) return bad_request("'orderBy' must be an array of {path, source, desc}");
  for (const json::Value& key : list->array()) {
    std::string_view path = key.string_or("path");
    if (path.empty()) return bad_request("each element of 'orderBy' needs a 'path'");
    const json::Value* desc = key.find("desc");
    // The text form of a sort key, as the HTTP parameter `sort` has it: "@" for metadata, ":desc".
    out.push_back(fmt::format("{}{}{}", key.string_or("source") == "meta" ? "@" : "", path,
                              desc && desc->is_bool() && desc->boolean() ? ":desc" : ""));
  }
  return out;
}

// {"model", "condition", "orderBy"?, "pointInTime"?}
Result<Query> query_of(const GrpcExchange& e, Service& service) {
  TRY(auto model, e.model(e.payload));
  Query query{.tenant = e.tenant(), .model = model.first, .version = model.second};
  TRY(query.at, e.time("pointInTime"));
  const json::Value* condition = e.payload.find("condition");
  if (condition && !condition->is_null()) {
    TRY(query.condition,
        // Not strict: over gRPC the original checks the paths, but neither operators nor value
        // types.
        service.condition(query.tenant, query.model, query.version, *condition, false));
  }
  TRY(query.sort_text, order_of(e));
  TRY(ModelPtr known, service.model(query.tenant, query.model, query.version));
  TRY(query.sort, parse_sort(query.sort_text, known.get()));
  return query;
}

std::string status_text(std::string_view id, const json::Value& job) {
  const json::Value* count = job.find("count");
  return ",\"status\":" +
         json::print(json::object({{"snapshotId", id},
                                   {"status", job.string_or("status")},
                                   {"entitiesCount", count ? *count : json::Value(0)}}));
}

}  // namespace

// {"entityId", "pointInTime"?} -> {"payload": {"type": "JSON", "data", "meta"}}
Result<void> get_entity_event(const GrpcExchangePtr& e) {
  TRY(std::string id, e->uuid(e->payload, "entityId"));
  AsOf as_of;
  TRY(as_of.time, e->time("pointInTime"));
  e->service().get(e->context, id, as_of, [e](Result<Bytes> a) {
    if (!a) return e->refuse(a.error());
    e->reply(payload_of(*a));
    e->finish();
  });
  return {};
}

Result<void> get_all_entities(const GrpcExchangePtr& e) {
  TRY(auto model, e->model(e->payload));
  Query query{.tenant = e->tenant(), .model = model.first, .version = model.second};
  int64_t size = e->number("pageSize", 0);
  const int64_t page = e->number("pageNumber", 0);
  if (size <= 0) size = 20;
  // The same limits as HTTP: 214748 pages of 10000 stay within 2^31 entities.
  if (size > 10'000 || page < 0 || page > 214'748)
    return bad_request("pageSize must be at most 10000 and pageNumber from 0 to 214748");
  query.limit = static_cast<size_t>(size);
  query.skip = static_cast<size_t>(size * page);
  TRY(query.at, e->time("pointInTime"));
  if (!e->context.reads_in_transaction(query.at)) return in_background(e, std::move(query));
  find_in_transaction(e, query, nullptr);
  return {};
}

Result<void> search_entities(const GrpcExchangePtr& e) {
  TRY(Query query, query_of(*e, e->service()));
  int64_t limit = e->number("limit", 1000);
  if (limit < 0 || limit > 10'000)
    return bad_request(fmt::format("limit is {}; it must be from 0 to 10000", limit));
  query.limit = static_cast<size_t>(limit ? limit : 1000);
  if (!e->context.reads_in_transaction(query.at)) return in_background(e, std::move(query));
  find_in_transaction(e, query, e->has("condition") ? e->payload.find("condition") : nullptr);
  return {};
}

// {"model"?} -> one reply per model: {"modelName", "modelVersion", "count"}. Without a model also
// those without entities.
Result<void> entity_stats(const GrpcExchangePtr& e) {
  std::vector<std::pair<std::string, int32_t>> models;
  if (e->has("model")) {
    TRY(auto model, e->model(e->payload));
    models.push_back(std::move(model));
  } else {
    TRY(std::vector<Model> all, e->service().models(e->tenant()));
    for (const Model& m : all)
      models.emplace_back(m.name, m.version);
  }
  e->service().counts(e->context, [e, models = std::move(models)](Result<StateCounts> counts) {
    if (!counts) return e->refuse(counts.error());
    for (const auto& [name, version] : models)
      e->reply(fmt::format(",\"modelName\":{},\"modelVersion\":{},\"count\":{}", json::quote(name),
                           version, counts->total(name, version)));
    e->finish();
  });
  return {};
}

// {"model"?, "states"?} -> one reply per model and state that has entities.
Result<void> entity_stats_by_state(const GrpcExchangePtr& e) {
  std::optional<std::pair<std::string, int32_t>> only;
  if (e->has("model")) {
    TRY(only, e->model(e->payload));
  }
  // `states` points into the payload, which the exchange keeps until it finishes.
  auto wanted = [only, states = e->payload.find("states")](const StateCounts::Row& r) {
    if (only && (r.model != only->first || r.version != only->second)) return false;
    if (!states || !states->is_array() || states->array().empty()) return true;
    return std::any_of(states->array().begin(), states->array().end(), [&](const json::Value& s) {
      return s.is_string() && s.string() == r.state;
    });
  };
  e->service().counts(e->context, [e, wanted](Result<StateCounts> counts) {
    if (!counts) return e->refuse(counts.error());
    for (const StateCounts::Row& r : counts->rows())
      if (wanted(r))
        e->reply(fmt::format(",\"modelName\":{},\"modelVersion\":{},\"state\":{},\"count\":{}",
                             json::quote(r.model), r.version, json::quote(r.state), r.count));
    e->finish();
  });
  return {};
}

// {"entityId", "pointInTime"?} -> one reply per change, newest first: {"changeMeta": {...}}
Result<void> entity_changes(const GrpcExchangePtr& e) {
  // gRPC says CREATE where HTTP says CREATED.
  static constexpr std::string_view kShort[] = {"", "CREATE", "UPDATE", "DELETE"};
  TRY(std::string id, e->uuid(e->payload, "entityId"));
  TRY(auto at, e->time("pointInTime"));
  e->service().history(e->context, id, at, [e, at](Result<History> history) {
    auto changes = history ? history->changes(at)
                           : Result<std::vector<Trail>>(fail(std::move(history.error())));
    if (!changes) return e->refuse(changes.error());
    for (const Trail& t : *changes) {
      json::Value meta = json::object({{"changeType", kShort[static_cast<size_t>(t.change)]},
                                       {"timeOfChange", rfc3339(t.now)},
                                       {"user", t.user}});
      if (t.change != ChangeKind::deleted) meta.object().add("transactionId", t.change_tx);
      e->reply(",\"changeMeta\":" + json::print(meta));
    }
    e->finish();
  });
  return {};
}

// Snapshots are search jobs: -> {"status": {"snapshotId", "status", "entitiesCount"}}
Result<void> snapshot_search(const GrpcExchangePtr& e) {
  TRY(Query query, query_of(*e, e->service()));
  e->service().start_search_job(e->context, std::move(query), [e](Result<Bytes> a) {
    if (!a) return e->refuse(a.error());
    e->reply(fmt::format(
        ",\"status\":{{\"snapshotId\":{},\"status\":\"RUNNING\",\"entitiesCount\":0}}", *a));
    e->finish();
  });
  return {};
}

Result<void> snapshot_status(const GrpcExchangePtr& e) {
  TRY(std::string id, e->uuid(e->payload, "snapshotId"));
  TRY(json::Value job, e->service().search_job(e->tenant(), id));
  e->reply(status_text(id, job));
  e->finish();
  return {};
}

Result<void> snapshot_cancel(const GrpcExchangePtr& e) {
  TRY(std::string id, e->uuid(e->payload, "snapshotId"));
  e->service().cancel_search_job(e->context, id, [e, id](Result<Bytes> a) {
    if (!a && !a.error().is(kSearchJobOver)) return e->refuse(a.error());
    // A job that was over before keeps its status; cancelling it is not an error over gRPC.
    auto job = e->service().search_job(e->tenant(), id);
    if (!job) return e->refuse(job.error());
    e->reply(status_text(id, *job));
    e->finish();
  });
  return {};
}

// {"snapshotId", "pageSize"?, "pageNumber"?} -> one reply per entity, as of the snapshot.
Result<void> snapshot_get(const GrpcExchangePtr& e) {
  TRY(std::string id, e->uuid(e->payload, "snapshotId"));
  int64_t size = e->number("pageSize", 1000);
  const int64_t page = e->number("pageNumber", 0);
  if (size <= 0) size = 1000;
  if (size > 10'000 || page < 0 || page > INT32_MAX)
    return bad_request("pageSize must be at most 10000 and pageNumber not negative");
  TRY(json::Value job, e->service().search_job(e->tenant(), id));
  if (job.string_or("status") != "SUCCESSFUL")
    return bad_request(fmt::format("search job {} is {}; results are there when it is SUCCESSFUL",
                                   id, job.string_or("status")));
  TRY(Service::Page found,
      e->service().search_job_page(e->tenant(), job, static_cast<uint64_t>(size),
                                   static_cast<uint64_t>(page), true));
  for (const std::string& envelope : found.envelopes)
    e->reply(payload_of(envelope));
  e->finish();
  return {};
}

}  // namespace pawl::entities

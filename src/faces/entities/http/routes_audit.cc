#include <fmt/format.h>

#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

// The audit trail of an entity, as pages of events.

namespace pawl::entities {

namespace {

constexpr std::string_view kSeverity = "INFO";

json::Object head(std::string_view kind, const Trail& t) {
  json::Object out;
  out.add("auditEventType", kind);
  out.add("severity", kSeverity);
  out.add("utcTime", rfc3339(t.now));
  out.add("microsTime", t.now / kMicrosecond);
  return out;
}

json::Value change_event(const Trail& t) {
  json::Object out = head("EntityChange", t);
  out.add("changeType", name_of(t.change));
  out.add("system", false);
  json::Value actor = json::object({{"id", t.user}, {"name", t.user}});
  if (t.change != ChangeKind::deleted) {
    out.add("entityId", t.entity);
    out.add("transactionId", t.change_tx);
    actor.object().add("legalId", t.tenant);
  }
  out.add("actor", std::move(actor));
  return out;
}

Result<json::Value> machine_event(const Trail& t, const Event& e) {
  json::Object out = head("StateMachine", t);
  out.add("eventType", name_of(e.kind));
  out.add("entityId", t.entity);
  out.add("details", e.details.empty() ? meaning_of(e.kind) : std::string_view(e.details));
  if (e.data.empty()) {
    out.add("data", nullptr);
  } else {
    TRY(json::Value data, json::parse(e.data));
    out.add("data", std::move(data));
  }
  if (!t.tx.empty()) out.add("transactionId", t.tx);
  if (!e.state.empty()) out.add("state", e.state);
  return json::Value(std::move(out));
}

Result<void> add_machine_event(json::Array& out, const Trail& t, const Event& e) {
  TRY(json::Value event, machine_event(t, e));
  out.push_back(std::move(event));
  return {};
}

struct Filter {
  bool changes = true;
  bool machine = true;
  std::string tx;
  std::string severity;
  std::optional<Time> from, to;
  int64_t limit = 0;
  int64_t cursor = 0;
  bool takes(const Trail& t) const { return (!from || t.now >= *from) && (!to || t.now < *to); }
};

Result<Filter> filter_of(HttpExchange& http) {
  Filter f;
  std::vector<std::string> kinds = http.request.query_params(http::kAuditQuery["eventType"]);
  if (!kinds.empty()) f.changes = f.machine = false;
  // There are no events of any other type, so such a filter finds none.
  for (const std::string& kind : kinds) {
    f.changes = f.changes || kind == "EntityChange";
    f.machine = f.machine || kind == "StateMachine";
  }
  f.severity = http.request.query_param(http::kAuditQuery["severity"]).value_or("");
  f.tx = http.request.query_param(http::kAuditQuery["transactionId"]).value_or("");
  if (!f.tx.empty() && !is_uuid(f.tx))
    return bad_request(fmt::format("the transactionId '{}' is not a UUID", f.tx));
  TRY(f.from, http.time(http::kAuditQuery["fromUtcTime"]));
  TRY(f.to, http.time(http::kAuditQuery["toUtcTime"]));
  TRY(f.limit, http.number(http::kAuditQuery["limit"]));
  // A cursor that this server did not make is the first page, as in the original.
  f.cursor = std::max<int64_t>(0, http.number(http::kAuditQuery["cursor"]).value_or(0));
  if (f.limit < 1)
    return bad_request(fmt::format("limit is {}; it must be from 1 to 1000", f.limit));
  f.limit = std::min<int64_t>(f.limit, 1000);
  f.cursor = std::min(f.cursor, INT64_MAX - f.limit);
  return f;
}

Result<Bytes> show_events(const History& history, const std::string& id, const Filter& filter) {
  const int64_t limit = filter.limit;
  const int64_t cursor = filter.cursor;
  json::Array items;
  int64_t nth = 0;
  bool more = false;
  Result<void> good;
  std::optional<Trail> newer;  // the change that was visited last
  auto wanted = [&] {
    ++nth;
    more = more || nth > cursor + limit;
    return nth > cursor && nth <= cursor + limit;
  };
  bool none = !filter.severity.empty() && filter.severity != kSeverity;
  TRY(bool known, history.each([&](const Trail& t) {
    if (none) return false;
    if (!filter.takes(t)) return true;
    const bool repeated = newer && History::same_change(t, *newer);
    if (t.change != ChangeKind::none) newer = t;
    if (filter.changes && t.change != ChangeKind::none && !repeated &&
        (filter.tx.empty() || filter.tx == t.change_tx) && wanted())
      items.push_back(change_event(t));
    if (!filter.machine || (!filter.tx.empty() && filter.tx != t.tx)) return !more;
    for (auto e = t.events.rbegin(); e != t.events.rend() && good; ++e)
      if (wanted()) good = add_machine_event(items, t, *e);
    return good && !more;
  }));
  TRY_OK(good);
  if (!known) return fail(entity_not_found(id));
  json::Object pagination;
  pagination.add("hasNext", more);
  if (more) pagination.add("nextCursor", std::to_string(cursor + limit));
  return json::print(
      json::object({{"items", std::move(items)}, {"pagination", std::move(pagination)}}));
}

Result<Bytes> show_end(const History& history, const std::string& id, const std::string& tx) {
  json::Array found;
  Result<void> good;
  TRY_OK(history.each([&](const Trail& t) {
    for (auto e = t.events.rbegin(); t.tx == tx && e != t.events.rend() && found.empty() && good;
         ++e)
      if (e->kind == EventKind::finish) good = add_machine_event(found, t, *e);
    return good && found.empty();
  }));
  TRY_OK(good);
  if (found.empty()) return fail(entity_not_found(id));
  return json::print(found[0]);
}

void with_history(const HttpExchangePtr& http, const std::string& id,
                  std::function<Result<Bytes>(const History&)> show) {
  http->service().history(http->context(), id, std::nullopt,
                          [http, show = std::move(show)](Result<History> history) {
                            if (!history) return http->refuse(history.error());
                            http->reply(show(*history));
                          });
}

Result<void> events(const HttpExchangePtr& http) {
  TRY(std::string id, http->uuid(0));
  TRY(Filter filter, filter_of(*http));
  with_history(http, id, [id, filter = std::move(filter)](const History& history) {
    return show_events(history, id, filter);
  });
  return {};
}

Result<void> finished(const HttpExchangePtr& http) {
  TRY(std::string id, http->uuid(0));
  TRY(std::string tx, http->uuid(1));
  with_history(http, id, [id, tx](const History& history) { return show_end(history, id, tx); });
  return {};
}

}  // namespace

void add_audit_routes(RouteTable& routes) {
  routes.add_async("GET", "/audit/entity/{id}", events,
                   "The audit trail of an entity, newest event first.", http::kGetAudit);
  routes.slow();
  routes.add_async("GET", "/audit/entity/{id}/workflow/{tx}/finished", finished,
                   "The last event of the state machine in a transaction.", http::kGetFinished);
  routes.slow();
}

}  // namespace pawl::entities

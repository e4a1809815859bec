#include <fmt/format.h>

#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

// Routes about single entities, and the lists and removals of a model.

namespace pawl::entities {

namespace {

// A page that ends after this many entities is read in the background, not on the thread of the
// request.
constexpr size_t kMaxInlineDepth = 2000;

// The transaction id in If-Match, bare or quoted as an entity tag.
std::string if_match(const HttpExchange& http) {
  std::string_view tag = http.request.header(http::kUpdateHeaders["If-Match"]);
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag.size() > 1 && tag.front() == '"' && tag.back() == '"')
    tag = tag.substr(1, tag.size() - 2);
  return tag == "*" ? std::string() : std::string(tag);
}

// A patch is a JSON merge patch. Any content type is accepted except those of other kinds of patch.
Result<void> known_patch(const HttpExchange& http) {
  std::string_view type = http.request.header("Content-Type");
  if (http.param(0) != "JSON")
    return fail(Code::invalid, "UNSUPPORTED_MEDIA_TYPE",
                fmt::format("a patch is JSON; the format {} cannot be patched", http.param(0)));
  if (type.starts_with("application/json-patch+json"))
    return fail(Code::unsupported, "NOT_IMPLEMENTED",
                "JSON Patch (RFC 6902) is not supported; send a merge patch (RFC 7386)");
  if (type.starts_with("application/xml") || type.starts_with("text/xml"))
    return fail(Code::invalid, "UNSUPPORTED_MEDIA_TYPE",
                "send a merge patch as application/merge-patch+json");
  return {};
}

AsyncHandler changes_one(Item::Op op) {
  return [op](HttpExchangePtr http) -> Result<void> {
    TRY_OK(known_format(http->param(0)));
    if (op == Item::patch) TRY_OK(known_patch(*http));
    TRY(std::string id, http->uuid(1));
    TRY(json::Value value, http->document(0));
    Command command;
    Item& item = command.items.emplace_back(item_of(op, std::move(value)));
    item.id = std::move(id);
    item.if_match = if_match(*http);
    if (http->request.params.size() > 2) item.transition = http->param(2);
    http->service().write(http->context(), std::move(command), reply_to(http));
    return {};
  };
}

Result<void> get_one(const HttpExchangePtr& http) {
  TRY(std::string id, http->uuid(0));
  if (http->request.query.empty() && !http->request.has_header("X-Tx-Token")) {
    TRY(StoredEntity found, http->service().find(http->tenant(), id, {}));
    Bytes out;
    out.reserve(found.view.data.size() + 400);
    append_envelope(out, found.view, true);
    http->json(std::move(out));
    return {};
  }
  TRY(AsOf as_of, http->as_of());
  http->service().get(http->context(), id, as_of, reply_to(http));
  return {};
}

Result<void> delete_one(const HttpExchangePtr& http) {
  TRY(std::string id, http->uuid(0));
  http->service().act(http->context(), "remove", json::object({{"id", id}}), reply_to(http));
  return {};
}

Result<void> delete_all(const HttpExchangePtr& http) {
  TRY(int32_t version, http->version(1));
  // The time is not used, but a malformed one must not delete anything.
  TRY_OK(http->time(http::kAtQuery["pointInTime"]));
  std::optional<json::Value> condition;
  if (!http->request.body.empty()) {
    TRY(condition, http->body());
    TRY_OK(http->service().condition(http->tenant(), http->param(0), version, *condition, true));
  }
  bool verbose = http->request.query_param(http::kDeleteQuery["verbose"]).value_or("") == "true";
  http->service().remove_all(http->context(), http->param(0), version,
                             {std::move(condition), verbose}, reply_to(http));
  return {};
}

Result<Bytes> show_changes(const History& history, const std::optional<Time>& at) {
  TRY(std::vector<Trail> changes, history.changes(at));
  json::Array out;
  for (const Trail& t : changes) {
    json::Value change = json::object(
        {{"changeType", name_of(t.change)}, {"timeOfChange", rfc3339(t.now)}, {"user", t.user}});
    if (t.change != ChangeKind::deleted) change.object().add("transactionId", t.change_tx);
    out.push_back(std::move(change));
  }
  return json::print(out);
}

Result<void> changes(const HttpExchangePtr& http) {
  TRY(std::string id, http->uuid(0));
  TRY(std::optional<Time> at, http->time(http::kAtQuery["pointInTime"]));
  http->service().history(http->context(), id, at, [http, at](Result<History> history) {
    if (!history) return http->refuse(history.error());
    http->reply(show_changes(*history, at));
  });
  return {};
}

// Naming a transaction that did not write the entity is a bad request.
Result<void> transitions_of(const HttpExchangePtr& http, const std::string& id) {
  TRY(AsOf as_of, http->as_of());
  http->service().transitions(http->context(), id, as_of, [http, as_of](Result<Bytes> list) {
    if (!list && !as_of.tx.empty() && list.error().is(kEntityNotFound))
      list = bad_request(fmt::format("transaction {} is not known for this entity", as_of.tx));
    http->reply(std::move(list));
  });
  return {};
}

Result<void> transitions(const HttpExchangePtr& http) {
  TRY(std::string id, http->uuid(0));
  return transitions_of(http, id);
}

// Older paths with ?entityClass=Name.Version&entityId=...
Result<std::string> asked_entity(HttpExchange& http) {
  std::string id = http.request.query_param(http::kEntityQuery["entityId"]).value_or("");
  if (!is_uuid(id))
    return bad_request(fmt::format("the parameter entityId is '{}', not a UUID", id));
  return id;
}

Result<void> launch_transition(const HttpExchangePtr& http) {
  Command command;
  Item& item = command.items.emplace_back(Item{.op = Item::fire});
  TRY(item.id, asked_entity(*http));
  item.transition = http->request.query_param(http::kLaunchQuery["transitionName"]).value_or("");
  if (item.transition.empty()) return bad_request("the parameter transitionName is required");
  http->service().write(http->context(), std::move(command), reply_to(http));
  return {};
}

// "name.version". The class only has to be well-formed: the entity knows its own model.
Result<void> check_class(const HttpExchange& http) {
  const std::string given =
      http.request.query_param(http::kEntityQuery["entityClass"]).value_or("");
  const size_t dot = given.rfind('.');
  const char* end = given.data() + given.size();
  int32_t version = 0;
  if (dot != given.npos && dot > 0) {
    auto parsed = std::from_chars(given.data() + dot + 1, end, version);
    if (parsed.ec == std::errc() && parsed.ptr == end) return {};
  }
  return bad_request(
      fmt::format("the parameter entityClass is '{}'; it must be name.version", given));
}

Result<void> fetch_transitions(const HttpExchangePtr& http) {
  TRY_OK(check_class(*http));
  TRY(std::string id, asked_entity(*http));
  return transitions_of(http, id);
}

Result<Bytes> page_of(HttpExchange& http, const Query& query) {
  Bytes out = "[";
  TRY_OK(search(http.service().kernel().snapshot(), query, nullptr, [&](const EntityView& e) {
    if (out.size() > 1) out += ',';
    append_envelope(out, e, false);
    return true;
  }));
  return out += ']';
}

Result<void> list(const HttpExchangePtr& http) {
  TRY(int32_t version, http->version(1));
  TRY(int64_t size, http->number(http::kListQuery["pageSize"]));
  TRY(int64_t page, http->number(http::kListQuery["pageNumber"]));
  TRY(auto at, http->time(http::kAtQuery["pointInTime"]));
  if (size < 0 || size > 10'000)
    return bad_request(fmt::format("pageSize is {}; it must be from 0 to 10000", size));
  if (page < 0 || page > 214'748)
    return bad_request(fmt::format("pageNumber is {}; it must be from 0 to 214748", page));
  if (size == 0) {
    http->json("[]");
    return {};
  }
  Query query{.tenant = http->tenant(), .model = http->param(0), .version = version};
  query.at = at;
  query.limit = static_cast<size_t>(size);
  query.skip = static_cast<size_t>(size * page);
  if (http->context().reads_in_transaction(at)) {
    http->service().find_in_transaction(http->context(), query, nullptr, [http](Result<Bytes> a) {
      if (!a) return http->refuse(a.error());
      http->json(array_of_lines(*std::move(a)));
    });
    return {};
  }
  if (!at && query.skip + query.limit <= kMaxInlineDepth) {
    http->reply(page_of(*http, query));
    return {};
  }
  return http->service().run_query(
      std::move(query), http->watch_client(),
      [http](const Query& limited) { http->reply(page_of(*http, limited)); });
}

}  // namespace

void add_entity_routes(RouteTable& routes) {
  routes.add_async("GET", "/entity/{id}", get_one,
                   "One entity: now, at a pointInTime, or as a transactionId left it.",
                   http::kGetEntity);
  routes.add_async("DELETE", "/entity/{id}", delete_one, "Deletes one entity; its history stays.",
                   http::kDeleteEntity);
  routes.add_async("GET", "/entity/{id}/changes", changes,
                   "The changes of an entity, newest first.", http::kGetChanges);
  routes.slow();
  routes.add_async("GET", "/entity/{id}/transitions", transitions,
                   "The transitions of the entity's state.", http::kGetTransitions);
  routes.add_async("GET", "/platform-api/entity/fetch/transitions", fetch_transitions,
                   "The transitions of the entity's state.", http::kFetchTransitions);
  routes.add_async("PUT", "/platform-api/entity/transition", launch_transition,
                   "Fires the transition with the document as it is: entityId, transitionName.",
                   http::kLaunch);
  routes.add_async("PUT", "/entity/{format}/{id}", changes_one(Item::update),
                   "Replaces the document and cascades.", http::kUpdate);
  routes.add_async("PUT", "/entity/{format}/{id}/{transition}", changes_one(Item::update),
                   "Replaces the document and fires the transition.", http::kUpdateAndFire);
  routes.add_async("PATCH", "/entity/{format}/{id}", changes_one(Item::patch),
                   "Merges a patch (RFC 7386) into the document and cascades.", http::kPatch);
  routes.add_async("PATCH", "/entity/{format}/{id}/{transition}", changes_one(Item::patch),
                   "Merges a patch (RFC 7386) and fires the transition.", http::kPatchAndFire);
  routes.add_async("GET", "/entity/{name}/{version}", list,
                   "The entities of a model by id, in pages.", http::kListEntities);
  routes.add_async(
      "DELETE", "/entity/{name}/{version}", delete_all,
      "Deletes the entities of a model: all, or those that a condition in the body matches. "
      "verbose lists them.",
      http::kDeleteEntities);
}

}  // namespace pawl::entities

#include <fmt/format.h>

#include "faces/entities/http/routes.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

// A page that lies deeper than this is not looked for on the thread that reads requests.
constexpr size_t kShallow = 2000;

// If-Match holds a transaction id, bare or quoted as an entity tag.
std::string if_match(const Http& http) {
  std::string_view tag = http.request.header("If-Match");
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag.size() > 1 && tag.front() == '"' && tag.back() == '"')
    tag = tag.substr(1, tag.size() - 2);
  return tag == "*" ? std::string() : std::string(tag);
}

// A merge patch is JSON; its content type is not insisted on, but another kind of patch is not
// taken for one.
Result<void> known_patch(const Http& http) {
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

Later changes_one(Item::Op op) {
  return [op](HttpPtr http) -> Result<void> {
    TRY_OK(known_format(http->param(0)));
    if (op == Item::patch) TRY_OK(known_patch(*http));
    TRY(std::string id, http->uuid(1));
    TRY(json::Value value, http->document(0));
    Command command;
    Item& item = command.items.emplace_back(item_of(op, std::move(value)));
    item.id = std::move(id);
    item.if_match = if_match(*http);
    if (http->request.params.size() > 2) item.transition = http->param(2);
    http->service().write(http->who(), std::move(command),
                          [http](Result<Bytes> a) { http->reply(std::move(a)); });
    return {};
  };
}

Result<void> get_one(const HttpPtr& http) {
  TRY(std::string id, http->uuid(0));
  if (http->request.query.empty() && !http->request.has_header("X-Tx-Token")) {
    TRY(Found found, http->service().find(http->tenant(), id, {}));
    Bytes out;
    out.reserve(found.view.data.size() + 400);
    append_envelope(out, found.view, true);
    http->json(std::move(out));
    return {};
  }
  TRY(When when, http->when());
  http->service().get(http->who(), id, when,
                      [http](Result<Bytes> a) { http->reply(std::move(a)); });
  return {};
}

Result<void> delete_one(const HttpPtr& http) {
  TRY(std::string id, http->uuid(0));
  http->service().act(http->who(), "remove", json::object({{"id", id}}),
                      [http](Result<Bytes> a) { http->reply(std::move(a)); });
  return {};
}

Result<void> delete_all(const HttpPtr& http) {
  TRY(int32_t version, http->version(1));
  TRY_OK(http->time("pointInTime"));  // it changes nothing, but who mistypes it deletes nothing
  std::optional<json::Value> condition;
  if (!http->request.body.empty()) {
    TRY(condition, http->body());
    TRY_OK(http->service().condition(http->tenant(), http->param(0), version, *condition, true));
  }
  bool verbose = http->request.query_param("verbose").value_or("") == "true";
  http->service().remove_all(http->who(), http->param(0), version, {std::move(condition), verbose},
                             [http](Result<Bytes> a) { http->reply(std::move(a)); });
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

Result<void> changes(const HttpPtr& http) {
  TRY(std::string id, http->uuid(0));
  TRY(std::optional<Time> at, http->time("pointInTime"));
  http->service().history(http->who(), id, at, [http, at](Result<History> history) {
    history ? http->reply(show_changes(*history, at)) : http->refuse(history.error());
  });
  return {};
}

// A transaction that did not write the entity is a bad argument, whoever's it may be.
Result<void> transitions_of(const HttpPtr& http, const std::string& id) {
  TRY(When when, http->when());
  http->service().transitions(http->who(), id, when, [http, when](Result<Bytes> list) {
    if (!list && !when.tx.empty() && list.error().reason == "ENTITY_NOT_FOUND")
      list = bad_request(fmt::format("transaction {} is not known for this entity", when.tx));
    http->reply(std::move(list));
  });
  return {};
}

Result<void> transitions(const HttpPtr& http) {
  TRY(std::string id, http->uuid(0));
  return transitions_of(http, id);
}

// Older addresses: ?entityClass=Name.Version&entityId=...
Result<std::string> asked_entity(Http& http) {
  std::string id = http.request.query_param("entityId").value_or("");
  if (!is_uuid(id))
    return bad_request(fmt::format("the parameter entityId is '{}', not a UUID", id));
  return id;
}

Result<void> launch_transition(const HttpPtr& http) {
  Command command;
  Item& item = command.items.emplace_back(Item{.op = Item::fire});
  TRY(item.id, asked_entity(*http));
  item.transition = http->request.query_param("transitionName").value_or("");
  if (item.transition.empty()) return bad_request("the parameter transitionName is required");
  http->service().write(http->who(), std::move(command),
                        [http](Result<Bytes> a) { http->reply(std::move(a)); });
  return {};
}

Result<void> fetch_transitions(const HttpPtr& http) {
  TRY(std::string id, asked_entity(*http));
  return transitions_of(http, id);
}

Result<Bytes> page_of(Http& http, const Query& query) {
  Bytes out = "[";
  TRY_OK(search(http.service().kernel().snapshot(), query, nullptr, [&](const EntityView& e) {
    if (out.size() > 1) out += ',';
    append_envelope(out, e, false);
    return true;
  }));
  return out += ']';
}

Result<void> list(const HttpPtr& http) {
  TRY(int32_t version, http->version(1));
  TRY(int64_t size, http->number("pageSize", 20));
  TRY(int64_t page, http->number("pageNumber", 0));
  TRY(auto at, http->time("pointInTime"));
  if (size < 1 || size > 10'000)
    return bad_request(fmt::format("pageSize is {}; it must be from 1 to 10000", size));
  if (page < 0 || page > 214'748)
    return bad_request(fmt::format("pageNumber is {}; it must be from 0 to 214748", page));
  Query query{.tenant = http->tenant(), .model = http->param(0), .version = version};
  query.at = at;
  query.limit = static_cast<size_t>(size);
  query.skip = static_cast<size_t>(size * page);
  if (http->who().reads_inside(at)) {
    http->service().find_inside(http->who(), query, nullptr, [http](Result<Bytes> a) {
      a ? http->json(array_of_lines(*std::move(a))) : http->refuse(a.error());
    });
    return {};
  }
  if (!at && query.skip + query.limit <= kShallow) {
    http->reply(page_of(*http, query));
    return {};
  }
  if (http->service().background().add([http, query] { http->reply(page_of(*http, query)); }))
    return {};
  return fail(Code::exhausted, "TOO_MANY_SEARCHES", "too many searches wait already: retry later");
}

}  // namespace

void add_entity_routes(Rows& rows) {
  rows.later("GET", "/entity/{id}", get_one,
             "One entity: now, at a pointInTime, or as a transactionId left it.");
  rows.later("DELETE", "/entity/{id}", delete_one, "Deletes one entity; its history stays.");
  rows.later("GET", "/entity/{id}/changes", changes, "The changes of an entity, newest first.");
  rows.later("GET", "/entity/{id}/transitions", transitions,
             "The transitions of the entity's state.");
  rows.later("GET", "/platform-api/entity/fetch/transitions", fetch_transitions,
             "The transitions of the entity's state.");
  rows.later("PUT", "/platform-api/entity/transition", launch_transition,
             "Fires the transition with the document as it is: entityId, transitionName.");
  rows.later("PUT", "/entity/{format}/{id}", changes_one(Item::update),
             "Replaces the document and cascades.");
  rows.later("PUT", "/entity/{format}/{id}/{transition}", changes_one(Item::update),
             "Replaces the document and fires the transition.");
  rows.later("PATCH", "/entity/{format}/{id}", changes_one(Item::patch),
             "Merges a patch (RFC 7386) into the document and cascades.");
  rows.later("PATCH", "/entity/{format}/{id}/{transition}", changes_one(Item::patch),
             "Merges a patch (RFC 7386) and fires the transition.");
  rows.later("GET", "/entity/{name}/{version}", list, "The entities of a model by id, in pages.");
  rows.later("DELETE", "/entity/{name}/{version}", delete_all,
             "Deletes the entities of a model: all, or those that a condition in the body matches. "
             "verbose lists them.");
}

}  // namespace pawl::entities

#include <fmt/format.h>

#include "faces/entities/grpc/exchange.h"
#include "faces/entities/http/routes.h"
#include "faces/entities/model/xml.h"
#include "json/text.h"

// Events that write entities.

namespace pawl::entities {

namespace {

// A member, or null. The reference is valid as long as `from`.
const json::Value& inner(const json::Value& from, std::string_view name) {
  static const json::Value null;
  const json::Value* v = from.find(name);
  return v ? *v : null;
}

// "dataFormat" is a member of the request, not of each payload.
Result<json::Value> data_of(const GrpcExchange& e, const json::Value& from) {
  const json::Value& data = inner(from, "data");
  std::string_view format = e.payload.string_or("dataFormat", "JSON");
  TRY_OK(known_format(format));
  if (format == "XML") {
    if (!data.is_string()) return bad_request("XML data must be a string");
    return parse_xml(data.string());
  }
  if (data.is_null()) return bad_request("the payload needs 'data'");
  return data;
}

void reply_transaction(const GrpcExchangePtr& e, Result<Bytes> answer) {
  if (!answer) return e->refuse(answer.error());
  // Our own verb's JSON: it always parses.
  auto parsed = json::parse(*answer);
  json::Value info = json::object({{"transactionId", inner(*parsed, "transactionId")},
                                   {"entityIds", inner(*parsed, "entityIds")}});
  std::string more = ",\"transactionInfo\":" + json::print(info);
  e->append_warnings(*parsed, more);
  e->reply(more);
  e->finish();
}

// {"model": {"name", "version"}, "data"}
Result<Item> create_item(const GrpcExchange& e, const json::Value& from) {
  TRY(auto model, e.model(from));
  TRY(json::Value data, data_of(e, from));
  if (data.is_array())
    return bad_request("'data' must be one document; EntityCreateCollectionRequest takes several");
  Item item = item_of(Item::create, std::move(data));
  item.model = model.first;
  item.version = model.second;
  return item;
}

// {"entityId", "data", "transition"?}. There is no If-Match over gRPC.
Result<Item> change_item(const GrpcExchange& e, const json::Value& from, Item::Op op) {
  TRY(std::string id, e.uuid(from, "entityId"));
  TRY(json::Value data, data_of(e, from));
  Item item = item_of(op, std::move(data));
  item.id = std::move(id);
  const json::Value& transition = inner(from, "transition");
  if (!transition.is_null() && !transition.is_string())
    return bad_request("'transition' must be a string");
  if (transition.is_string()) item.transition = transition.string();
  return item;
}

// All items in one transaction.
void write(const GrpcExchangePtr& e, std::vector<Item> items) {
  Command command;
  command.items = std::move(items);
  command.warnings = true;
  e->service().write(e->context, std::move(command),
                     [e](Result<Bytes> a) { reply_transaction(e, std::move(a)); });
}

// The collection of a request: 1 to kMaxWindow payloads.
Result<const json::Array*> payloads(const GrpcExchange& e) {
  if (e.has("transactionWindow") && !e.context.token.empty())
    return fail(window_in_joined_transaction());
  const json::Value& list = inner(e.payload, "payloads");
  if (!list.is_array() || list.array().empty())
    return bad_request("the request needs an array of 'payloads'");
  if (list.array().size() > kMaxWindow)
    return bad_request(fmt::format("a collection has at most {} payloads", kMaxWindow));
  return &list.array();
}

Result<void> change(const GrpcExchangePtr& e, Item::Op op) {
  TRY(Item item, change_item(*e, inner(e->payload, "payload"), op));
  std::vector<Item> items;
  items.push_back(std::move(item));
  write(e, std::move(items));
  return {};
}

}  // namespace

// {"payload": {"model", "data"}} -> {"transactionInfo": {"transactionId", "entityIds"}}
Result<void> create_entity(const GrpcExchangePtr& e) {
  TRY(Item item, create_item(*e, inner(e->payload, "payload")));
  std::vector<Item> items;
  items.push_back(std::move(item));
  write(e, std::move(items));
  return {};
}

Result<void> update_entity(const GrpcExchangePtr& e) { return change(e, Item::update); }
Result<void> patch_entity(const GrpcExchangePtr& e) { return change(e, Item::patch); }

// {"entityId", "transition"}: fires it with the current data; the reply says success only.
Result<void> fire_transition(const GrpcExchangePtr& e) {
  TRY(std::string id, e->uuid(e->payload, "entityId"));
  std::string transition(e->payload.string_or("transition"));
  if (transition.empty()) return bad_request("the request needs a 'transition'");
  Command command;
  Item item{.op = Item::fire};
  item.id = id;
  item.transition = transition;
  command.items.push_back(std::move(item));
  command.warnings = true;
  e->service().write(e->context, std::move(command), [e](Result<Bytes> a) {
    if (!a) return e->refuse(a.error());
    auto parsed = json::parse(*a);
    std::string more;
    e->append_warnings(*parsed, more);
    e->reply(more);
    e->finish();
  });
  return {};
}

// {"entityId"} -> {"entityId", "model", "transactionId"}. The id is repeated in a failed reply too.
Result<void> delete_entity(const GrpcExchangePtr& e) {
  e->required_members +=
      fmt::format(",\"entityId\":{}", json::quote(e->payload.string_or("entityId")));
  TRY(std::string id, e->uuid(e->payload, "entityId"));
  e->service().act(e->context, "remove", json::object({{"id", id}}), [e](Result<Bytes> a) {
    if (!a) return e->refuse(a.error());
    auto parsed = json::parse(*a);
    e->reply(fmt::format(",\"entityId\":{},\"model\":{},\"transactionId\":{}",
                         json::print(inner(*parsed, "id")), json::print(inner(*parsed, "modelKey")),
                         json::print(inner(*parsed, "transactionId"))));
    e->finish();
  });
  return {};
}

// {"payloads": [{"model", "data"}]}: one transaction.
Result<void> create_collection(const GrpcExchangePtr& e) {
  TRY(const json::Array* list, payloads(*e));
  std::vector<Item> items;
  for (const json::Value& p : *list) {
    TRY(Item item, create_item(*e, p));
    items.push_back(std::move(item));
  }
  write(e, std::move(items));
  return {};
}

// Each item has a transaction of its own, unless the request joins one. The first error ends the
// collection and is the answer.
Result<void> update_collection(const GrpcExchangePtr& e) {
  TRY(const json::Array* list, payloads(*e));
  std::vector<Item> items;
  for (const json::Value& p : *list) {
    TRY(Item item, change_item(*e, p, Item::update));
    items.push_back(std::move(item));
  }
  e->service().write_chunks(
      e->context, std::move(items), {.window = 1, .warnings = true}, [e](Result<Bytes> a) {
        if (!a) return reply_transaction(e, std::move(a));
        auto parsed = json::parse(*a);
        json::Array ids, warnings;
        for (const json::Value& chunk : parsed->array()) {
          if (const json::Value* error = chunk.find("error"))
            return e->refuse({Code::invalid,
                              std::string(error->string_or("code")),
                              std::string(error->string_or("message")),
                              {},
                              inner(*error, "retryable") == json::Value(true)});
          for (const json::Value& id : inner(chunk, "entityIds").array())
            ids.push_back(id);
          if (const json::Value* more = chunk.find("warnings"))
            warnings.insert(warnings.end(), more->array().begin(), more->array().end());
        }
        json::Value info =
            json::object({{"transactionId", inner(parsed->array().back(), "transactionId")},
                          {"entityIds", std::move(ids)}});
        std::string more = ",\"transactionInfo\":" + json::print(info);
        if (!warnings.empty()) more += ",\"warnings\":" + json::print(warnings);
        e->reply(more);
        e->finish();
      });
  return {};
}

// {"model"} -> {"entityIds": [], "modelId", "numDeleted"}. The ids are never listed, as in the
// original.
Result<void> delete_all_entities(const GrpcExchangePtr& e) {
  TRY(auto model, e->model(e->payload));
  e->service().remove_all(e->context, model.first, model.second, {}, [e](Result<Bytes> a) {
    if (!a) return e->refuse(a.error());
    auto parsed = json::parse(*a);
    const json::Value& result = inner(*parsed, "deleteResult");
    e->reply(fmt::format(",\"entityIds\":[],\"modelId\":{},\"numDeleted\":{}",
                         json::print(inner(*parsed, "entityModelClassId")),
                         json::print(inner(result, "numberOfEntititesRemoved"))));
    e->finish();
  });
  return {};
}

}  // namespace pawl::entities

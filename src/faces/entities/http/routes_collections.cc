#include <fmt/format.h>

#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "faces/entities/model/xml.h"
#include "json/text.h"

// Writes of several entities: arrays of one model, mixed collections, updates.

namespace pawl::entities {

namespace {

Result<size_t> window(const HttpExchange& http) {
  if (http.request.query_param(http::kWindowQuery["transactionWindow"]) &&
      http.request.has_header("X-Tx-Token"))
    return fail(window_in_joined_transaction());
  TRY(int64_t n, http.number(http::kWindowQuery["transactionWindow"]));
  if (n < 1 || n > static_cast<int64_t>(kMaxWindow))
    return bad_request(
        fmt::format("transactionWindow is {}; it must be from 1 to {}", n, kMaxWindow));
  return static_cast<size_t>(n);
}

Result<void> create(const HttpExchangePtr& http) {
  TRY(int32_t version, http->version(2));
  TRY(size_t chunk, window(*http));
  TRY(json::Value value, http->document(0));
  auto item = [&](json::Value v) {
    Item out = item_of(Item::create, std::move(v));
    out.model = http->param(1);
    out.version = version;
    return out;
  };
  if (value.is_array()) {
    std::vector<Item> items;
    items.reserve(value.array().size());
    for (json::Value& v : value.array())
      items.push_back(item(std::move(v)));
    http->service().write_chunks(http->context(), std::move(items), {.window = chunk},
                                 reply_to(http));
    return {};
  }
  Command command;
  command.items.push_back(item(std::move(value)));
  http->service().write(http->context(), std::move(command), [http](Result<Bytes> a) {
    if (a) *a = "[" + *a + "]";
    http->reply(std::move(a));
  });
  return {};
}

// The payload of an item is the document as a string.
Result<json::Value> payload(const json::Value& item, std::string_view format) {
  const json::Value* text = item.find(http::kNewItem["payload"]);
  if (!text || !text->is_string())
    return bad_request("each item needs a 'payload' that is a string holding the document");
  if (format == "XML") return parse_xml(text->string());
  auto value = json::parse(text->string());
  if (!value)
    return bad_request(fmt::format("malformed JSON in a payload: {}", value.error().message));
  return *std::move(value);
}

Result<json::Array> items_of(const HttpExchange& http) {
  TRY(json::Value body, http.body());
  if (body.is_null()) return json::Array();
  if (!body.is_array()) return bad_request("the body must be an array of items");
  return std::move(body.array());
}

// Sets the model of an item. A name that is missing names no model, and a version that is missing
// is 0, as in the original.
Result<void> read_model(const json::Value& from, Item& item) {
  auto wrong = [] {
    return bad_request("the 'model' of an item must have a 'name' and a 'version' of 32 bits");
  };
  if (!from.is_object() && !from.is_null()) return bad_request("each item must be an object");
  const json::Value* model = from.find(http::kNewItem["model"]);
  if (model && !model->is_null()) {
    if (!model->is_object()) return wrong();
    item.model = model->string_or(http::kModelKey["name"]);
    const json::Value* version = model->find(http::kModelKey["version"]);
    auto number = version && !version->is_null() ? version->as_int64() : int64_t{0};
    if (!number || *number < INT32_MIN || *number > INT32_MAX) return wrong();
    item.version = static_cast<int32_t>(*number);
  }
  if (item.model.empty()) return fail(model_not_found(item.model, item.version, false));
  return {};
}

Result<void> create_collection(const HttpExchangePtr& http) {
  TRY_OK(known_format(http->param(0)));
  TRY(size_t chunk, window(*http));
  TRY(json::Array given, items_of(*http));
  std::vector<Item> items;
  for (const json::Value& g : given) {
    Item model;
    TRY_OK(read_model(g, model));
    TRY(json::Value value, payload(g, http->param(0)));
    Item item = item_of(Item::create, std::move(value));
    item.model = std::move(model.model);
    item.version = model.version;
    items.push_back(std::move(item));
  }
  http->service().write_chunks(http->context(), std::move(items), {.window = chunk},
                               reply_to(http));
  return {};
}

Result<void> update_collection(const HttpExchangePtr& http) {
  if (http->param(0) != "JSON")
    return bad_request(
        fmt::format("collections are updated in the format JSON, not '{}'", http->param(0)));
  TRY(size_t chunk, window(*http));
  TRY(json::Array given, items_of(*http));
  if (given.empty()) return bad_request("the collection is empty");
  std::vector<Item> items;
  for (const json::Value& g : given) {
    std::string id(g.string_or(http::kUpdateItem["id"]));
    if (id.empty()) return bad_request("each item needs an 'id'");
    if (!is_uuid(id)) return fail(entity_not_found(id));
    TRY(json::Value value, payload(g, "JSON"));
    Item item = item_of(Item::update, std::move(value));
    item.id = id;
    item.transition = g.string_or(http::kUpdateItem["transition"]);
    item.if_match = g.string_or(http::kUpdateItem["ifMatch"]);
    items.push_back(std::move(item));
  }
  http->service().write_chunks(http->context(), std::move(items),
                               {.window = chunk, .lenient = true}, reply_to(http));
  return {};
}

}  // namespace

void add_collection_routes(RouteTable& routes) {
  routes.add_async("POST", "/entity/{format}/{name}/{version}", create,
                   "Creates one entity, or those of an array in chunks of transactionWindow.",
                   http::kCreate);
  routes.add_async("POST", "/entity/{format}", create_collection,
                   "Creates entities of several models.", http::kCreateCollection);
  routes.add_async("PUT", "/entity/{format}", update_collection, "Updates several entities.",
                   http::kUpdateCollection);
}

}  // namespace pawl::entities

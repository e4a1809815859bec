#include <fmt/format.h>

#include "faces/entities/http/routes.h"
#include "faces/entities/model/xml.h"
#include "json/text.h"

// Writes of several entities: arrays of one model, mixed collections, updates.

namespace pawl::entities {

namespace {

Result<size_t> window(const HttpExchange& http) {
  if (http.request.query_param("transactionWindow") && http.request.has_header("X-Tx-Token"))
    return fail(window_in_joined_transaction());
  TRY(int64_t n, http.number("transactionWindow", kDefaultWindow));
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
  const json::Value* text = item.find("payload");
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
  if (!body.is_array()) return bad_request("the body must be an array of items");
  if (body.array().empty()) return bad_request("the collection is empty");
  return std::move(body.array());
}

Result<void> create_collection(const HttpExchangePtr& http) {
  TRY_OK(known_format(http->param(0)));
  TRY(size_t chunk, window(*http));
  TRY(json::Array given, items_of(*http));
  std::vector<Item> items;
  for (const json::Value& g : given) {
    const json::Value* model = g.find("model");
    const json::Value* version = model ? model->find("version") : nullptr;
    std::string_view name = model ? model->string_or("name") : "";
    auto number = version ? version->as_int64() : std::nullopt;
    if (name.empty() || !number || *number < INT32_MIN || *number > INT32_MAX)
      return bad_request("each item needs a 'model' with 'name' and 'version'");
    TRY(json::Value value, payload(g, http->param(0)));
    Item item = item_of(Item::create, std::move(value));
    item.model = name;
    item.version = static_cast<int32_t>(*number);
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
  std::vector<Item> items;
  for (const json::Value& g : given) {
    std::string_view id = g.string_or("id");
    if (!is_uuid(id))
      return bad_request(fmt::format("each item needs an 'id' that is a UUID, not '{}'", id));
    TRY(json::Value value, payload(g, "JSON"));
    Item item = item_of(Item::update, std::move(value));
    item.id = id;
    item.transition = g.string_or("transition");
    item.if_match = g.string_or("ifMatch");
    items.push_back(std::move(item));
  }
  http->service().write_chunks(http->context(), std::move(items),
                               {.window = chunk, .lenient = true}, reply_to(http));
  return {};
}

}  // namespace

void add_collection_routes(RouteTable& routes) {
  routes.add_async("POST", "/entity/{format}/{name}/{version}", create,
                   "Creates one entity, or those of an array in chunks of transactionWindow.");
  routes.add_async("POST", "/entity/{format}", create_collection,
                   "Creates entities of several models.");
  routes.add_async("PUT", "/entity/{format}", update_collection, "Updates several entities.");
}

}  // namespace pawl::entities

#include <fmt/format.h>

#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "faces/entities/verbs/verbs.h"
#include "json/text.h"

// Edge messages: documents with headers that belong to no model.

namespace pawl::entities {

namespace {

struct HeaderField {
  std::string_view header;
  std::string_view name;
};
constexpr HeaderField kOptional[] = {
    {http::kMessageHeaders["X-Message-ID"], "messageId"},
    {http::kMessageHeaders["X-User-ID"], "userId"},
    {http::kMessageHeaders["X-Recipient"], "recipient"},
    {http::kMessageHeaders["X-Reply-To"], "replyTo"},
    {http::kMessageHeaders["X-Correlation-ID"], "correlationId"},
};

Result<json::Value> message_of(HttpExchange& http) {
  const wire::Request& r = http.request;
  if (!r.has_header("Content-Type")) return bad_request("the header Content-Type is required");
  if (!r.has_header("Content-Length")) return bad_request("the header Content-Length is required");
  TRY(wire::BodyReader body, http.body_object());
  const json::Value* payload = body.value().find(http::kMessage["payload"]);
  if (!payload) return bad_request("the body must be an object with a 'payload'");
  TRY(const json::Value* meta,
      body.object(body.value().find(http::kMessage["meta-data"]) ? http::kMessage["meta-data"]
                                                                 : http::kMessage["metaData"]));
  json::Object header;
  header.add("subject", http.param(0));
  header.add("contentType", r.header("Content-Type"));
  header.add("contentLength", static_cast<uint64_t>(r.body.size()));
  std::string_view encoding = r.header("Content-Encoding");
  header.add("contentEncoding", encoding.empty() ? std::string_view("UTF-8") : encoding);
  for (const HeaderField& f : kOptional)
    if (std::string_view v = r.header(f.header); !v.empty()) header.add(std::string(f.name), v);
  json::Object indexed;
  indexed.add("typeReferences", json::Object());
  if (meta)
    for (const json::Member& m : meta->object())
      indexed.set(m.name, m.value);
  json::Value metadata =
      json::object({{"values", json::object({{"typeReferences", json::Object()}})},
                    {"indexedValues", std::move(indexed)}});
  return json::object(
      {{"header", std::move(header)}, {"metaData", std::move(metadata)}, {"content", *payload}});
}

Result<void> create(const HttpExchangePtr& http) {
  TRY(json::Value message, message_of(*http));
  json::Value body = json::object({});
  body.object().add("message", std::move(message));
  http->service().act(http->context(), "message.new", std::move(body), reply_to(http));
  return {};
}

Result<Bytes> get(HttpExchange& http) {
  TRY(std::string id, http.uuid(0));
  TRY(Cell cell, http.service().kernel().read(message_key(http.tenant(), id)));
  if (!cell.exists()) return fail(message_not_found(id));
  return Bytes(cell.value());
}

// The older path, which clients of the hosted service still use: the content as text.
Result<Bytes> get_as_text(HttpExchange& http) {
  TRY(Bytes message, get(http));
  TRY(json::Value value, json::parse(message));
  if (const json::Value* content = value.find("content"))
    value.object().set("content", json::print(*content));
  return json::print(value);
}

Result<void> remove_message(const HttpExchangePtr& http) {
  TRY(std::string id, http->uuid(0));
  http->service().act(http->context(), "message.delete.one", json::object({{"id", id}}),
                      reply_to(http));
  return {};
}

Result<void> remove_messages(const HttpExchangePtr& http) {
  TRY(json::Value ids, http->body());
  if (!ids.is_array()) return bad_request("the body must be an array of message ids");
  for (const json::Value& id : ids.array())
    if (!id.is_string() || !is_uuid(id.string()))
      return bad_request("each message id must be a UUID");
  http->service().act(
      http->context(), "message.delete", json::object({{"ids", ids}}),
      [http, ids](Result<Bytes> a) {
        if (a) *a = json::print(json::Array{json::object({{"entityIds", ids}, {"success", true}})});
        http->reply(std::move(a));
      });
  return {};
}

}  // namespace

void add_message_routes(RouteTable& routes) {
  routes.add_async("POST", "/message/new/{subject}", create, "Stores a message.",
                   http::kNewMessage);
  routes.add("GET", "/message/{id}", get, "A message with its header and metadata.",
             http::kGetMessage);
  routes.add("GET", "/message/get/{id}", get_as_text,
             "A message whose content is text (older path).", http::kGetMessageText);
  routes.add_async("DELETE", "/message/{id}", remove_message, "Deletes a message.",
                   http::kDeleteMessage);
  routes.add_async("DELETE", "/message", remove_messages,
                   "Deletes several messages; those that do not exist are ignored.",
                   http::kDeleteMessages);
}

}  // namespace pawl::entities

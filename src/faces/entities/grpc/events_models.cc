#include <fmt/format.h>

#include "faces/entities/grpc/exchange.h"
#include "faces/entities/http/routes.h"
#include "faces/entities/model/xml.h"
#include "json/text.h"

// Events about models.

namespace pawl::entities {

namespace {

json::Value model_body(const std::pair<std::string, int32_t>& model) {
  return json::object({{"name", model.first}, {"version", model.second}});
}

// Adds the number of entities, which the verb names when it refuses because of them.
json::Value counted_body(GrpcExchange& e, const std::pair<std::string, int32_t>& model) {
  json::Value body = model_body(model);
  body.object().add("count", e.service().counts().total(e.tenant(), model.first, model.second));
  return body;
}

// The id follows from name and version: no read is needed.
std::string id_of(const std::pair<std::string, int32_t>& model) {
  Model m;
  m.name = model.first;
  m.version = model.second;
  return m.id();
}

}  // namespace

// {"dataFormat"?, "converter"?, "model", "payload": a sample} -> {"modelId"}
Result<void> model_import(const GrpcExchangePtr& e) {
  TRY(auto model, e->model(e->payload));
  std::string_view format = e->payload.string_or("dataFormat", "JSON"),
                   converter = e->payload.string_or("converter", "SAMPLE_DATA");
  TRY_OK(known_format(format));
  if (converter != "SAMPLE_DATA")
    return bad_request(fmt::format("unknown converter '{}'; use SAMPLE_DATA", converter));
  const json::Value* given = e->payload.find("payload");
  if (!given) return bad_request("the request needs a 'payload'");
  json::Value sample = *given;
  if (format == "XML") {
    if (!given->is_string()) return bad_request("an XML payload must be a string");
    TRY(sample, parse_xml(given->string()));
  }
  json::Value body = model_body(model);
  body.object().add("sample", std::move(sample));
  e->service().act(e->context, "model.import", std::move(body), [e](Result<Bytes> a) {
    if (!a) return e->refuse(a.error());
    e->reply(",\"modelId\":" + *a);
    e->finish();
  });
  return {};
}

// {"model", "converter"?} -> {"modelId", "model", "payload": {"currentState", "model"}}
Result<void> model_export(const GrpcExchangePtr& e) {
  TRY(auto model, e->model(e->payload));
  std::string_view converter = e->payload.string_or("converter", "JSON_SCHEMA");
  if (converter != "JSON_SCHEMA" && converter != "SIMPLE_VIEW")
    return bad_request(
        fmt::format("unknown converter '{}'; use JSON_SCHEMA or SIMPLE_VIEW", converter));
  TRY(ModelPtr found, e->service().model(e->tenant(), model.first, model.second));
  if (!found) return fail(model_not_found(model.first, model.second));
  json::Value view =
      converter == "JSON_SCHEMA" ? json_schema(found->shape) : simple_view(found->shape);
  json::Value payload =
      json::object({{"currentState", found->state()}, {"model", std::move(view)}});
  e->reply(fmt::format(",\"modelId\":{},\"model\":{},\"payload\":{}", json::quote(found->id()),
                       json::print(model_body(model)), json::print(payload)));
  e->finish();
  return {};
}

// {"model", "transition": "LOCK" | "UNLOCK"} -> {"modelId", "state"}
Result<void> model_transition(const GrpcExchangePtr& e) {
  TRY(auto model, e->model(e->payload));
  std::string_view transition = e->payload.string_or("transition");
  bool lock = transition == "LOCK";
  if (!lock && transition != "UNLOCK")
    return bad_request(fmt::format("unknown transition '{}'; use LOCK or UNLOCK", transition));
  e->service().act(e->context, lock ? "model.lock" : "model.unlock", counted_body(*e, model),
                   [e, lock, id = id_of(model)](Result<Bytes> a) {
                     if (!a) return e->refuse(a.error());
                     e->reply(fmt::format(",\"modelId\":\"{}\",\"state\":\"{}\"", id,
                                          lock ? "LOCKED" : "UNLOCKED"));
                     e->finish();
                   });
  return {};
}

// {"model"} -> {"modelId"}
Result<void> model_delete(const GrpcExchangePtr& e) {
  TRY(auto model, e->model(e->payload));
  e->service().act(e->context, "model.delete", counted_body(*e, model),
                   [e, id = id_of(model)](Result<Bytes> a) {
                     if (!a) return e->refuse(a.error());
                     e->reply(fmt::format(",\"modelId\":\"{}\"", id));
                     e->finish();
                   });
  return {};
}

// -> {"models": [{"id", "name", "version", "state"}]}
Result<void> model_get_all(const GrpcExchangePtr& e) {
  TRY(std::vector<Model> all, e->service().models(e->tenant()));
  json::Array out;
  for (const Model& m : all)
    out.push_back(json::object(
        {{"id", m.id()}, {"name", m.name}, {"version", m.version}, {"state", m.state()}}));
  e->reply(",\"models\":" + json::print(out));
  e->finish();
  return {};
}

// {"model", "uniqueKeys": [...]} -> {"modelId"}
Result<void> model_unique_keys(const GrpcExchangePtr& e) {
  TRY(auto model, e->model(e->payload));
  const json::Value* keys = e->payload.find("uniqueKeys");
  json::Value body = model_body(model);
  if (keys) body.object().add("keys", *keys);
  e->service().act(e->context, "model.unique", std::move(body),
                   [e, id = id_of(model)](Result<Bytes> a) {
                     if (!a) return e->refuse(a.error());
                     e->reply(fmt::format(",\"modelId\":\"{}\"", id));
                     e->finish();
                   });
  return {};
}

}  // namespace pawl::entities

#include <fmt/format.h>

#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

// Routes about models: import, export, lock, change level, indexes, unique keys.

namespace pawl::entities {

namespace {

constexpr std::string_view kConverters = "use JSON_SCHEMA or SIMPLE_VIEW";

Result<ModelPtr> model_at(HttpExchange& http, size_t name, size_t version) {
  TRY(int32_t v, http.version(version));
  TRY(ModelPtr model, http.service().model(http.tenant(), http.param(name), v));
  if (!model) return fail(model_not_found(http.param(name), v));
  return model;
}

Result<void> import_sample(const HttpExchangePtr& http) {
  const std::string& converter = http->param(1);
  TRY_OK(known_format(http->param(0)));
  if (converter != "SAMPLE_DATA")
    return bad_request(fmt::format("unknown converter '{}'; use SAMPLE_DATA", converter));
  TRY(int32_t version, http->version(3));
  TRY(json::Value sample, http->document(0));
  json::Value body = json::object({{"name", http->param(2)}, {"version", version}});
  body.object().add("sample", std::move(sample));
  http->service().act(http->context(), "model.import", std::move(body), reply_to(http));
  return {};
}

json::Array shown(const std::vector<UniqueKey>& keys) {
  json::Array out;
  for (const UniqueKey& k : keys) {
    json::Array fields;
    for (const std::string& p : k.paths)
      fields.emplace_back(p);
    out.push_back(json::object({{"id", k.name}, {"fields", std::move(fields)}}));
  }
  return out;
}

Result<Bytes> export_model(HttpExchange& http) {
  const std::string& converter = http.param(0);
  bool schema = converter == "JSON_SCHEMA";
  if (!schema && converter != "SIMPLE_VIEW")
    return bad_request(fmt::format("unknown converter '{}'; {}", converter, kConverters));
  TRY(ModelPtr model, model_at(http, 1, 2));
  json::Value out =
      json::object({{"currentState", model->state()},
                    {"model", schema ? json_schema(model->shape) : simple_view(model->shape)}});
  if (!model->unique_keys.empty()) out.object().add("uniqueKeys", shown(model->unique_keys));
  return json::print(out);
}

Result<Bytes> validate(HttpExchange& http) {
  TRY(ModelPtr model, model_at(http, 0, 1));
  TRY(json::Value value, http.body());
  Result<void> good = check(model->shape, value);
  return json::print(json::object({
      {"success", good.has_value()},
      {"message", good ? "the document is valid" : good.error().message},
      {"modelId", model->id()},
      {"modelKey", json::object({{"name", model->name}, {"version", model->version}})},
  }));
}

Result<Bytes> list(HttpExchange& http) {
  TRY(std::vector<Model> all, http.service().models(http.tenant()));
  json::Array out;
  for (const Model& m : all)
    out.push_back(json::object({{"id", m.id()},
                                {"modelName", m.name},
                                {"modelVersion", m.version},
                                {"currentState", m.state()},
                                {"modelUpdateDate", rfc3339(m.updated)}}));
  return json::print(out);
}

AsyncHandler acts(std::string verb) {
  return [verb](HttpExchangePtr http) -> Result<void> {
    TRY(int32_t version, http->version(1));
    json::Value body = json::object({{"name", http->param(0)}, {"version", version}});
    if (http->request.params.size() > 2)
      body.object().add("level", http->param(2));
    else
      body.object().add("count",
                        http->service().counts().total(http->tenant(), http->param(0), version));
    http->service().act(http->context(), verb, std::move(body), reply_to(http));
    return {};
  };
}

// The body is the list, or an object that has the list under one of these names.
Result<json::Value> listed(HttpExchange& http, std::initializer_list<std::string_view> names) {
  TRY(json::Value body, http.body());
  if (body.is_array()) return body;
  for (std::string_view name : names)
    if (json::Value* inner = body.find(name); inner && inner->is_array()) return std::move(*inner);
  return bad_request(
      fmt::format("give an array, or an object with the array '{}'", *names.begin()));
}

Result<void> put_indexes(const HttpExchangePtr& http) {
  TRY(int32_t version, http->version(1));
  TRY(json::Value fields, listed(*http, {http::kIndexes["fields"], http::kIndexes["indexes"],
                                         http::kIndexes["paths"]}));
  json::Value body =
      json::object({{"name", http->param(0)}, {"version", version}, {"fields", std::move(fields)}});
  http->service().set_indexes(http->context(), std::move(body), reply_to(http));
  return {};
}

Result<Bytes> get_indexes(HttpExchange& http) {
  TRY(ModelPtr model, model_at(http, 0, 1));
  json::Array out;
  for (const Index& i : model->indexes)
    out.push_back(json::object({{"path", i.path}, {"state", i.ready ? "READY" : "BUILDING"}}));
  return json::print(json::object({{"indexes", std::move(out)}}));
}

Result<void> put_unique(const HttpExchangePtr& http) {
  TRY(int32_t version, http->version(1));
  TRY(json::Value keys,
      listed(*http, {http::kUniqueKeys["uniqueKeys"], http::kUniqueKeys["keys"]}));
  json::Value body =
      json::object({{"name", http->param(0)}, {"version", version}, {"keys", std::move(keys)}});
  http->service().act(http->context(), "model.unique", std::move(body), reply_to(http));
  return {};
}

Result<Bytes> get_unique(HttpExchange& http) {
  TRY(ModelPtr model, model_at(http, 0, 1));
  return json::print(json::object({{"uniqueKeys", shown(model->unique_keys)}}));
}

}  // namespace

void add_model_routes(RouteTable& routes) {
  routes.add_async("POST", "/model/import/{dataFormat}/{converter}/{name}/{version}", import_sample,
                   "Registers a model from sample data, or merges more into it.",
                   http::kImportModel);
  routes.add("GET", "/model/export/{converter}/{name}/{version}", export_model,
             "The model as JSON_SCHEMA or SIMPLE_VIEW.", http::kExportModel);
  routes.slow();
  routes.add("POST", "/model/validate/{name}/{version}", validate,
             "Tells whether a document fits the model.", http::kValidate);
  routes.slow();
  routes.add("GET", "/model/", list, "All models of the tenant.", http::kListModelsSlash);
  routes.slow();
  routes.add("GET", "/model", list, "All models of the tenant.", http::kListModels);
  routes.slow();
  routes.add_async("PUT", "/model/{name}/{version}/lock", acts("model.lock"),
                   "Locks the model: entities can be written from now on.", http::kLock);
  routes.add_async("PUT", "/model/{name}/{version}/unlock", acts("model.unlock"),
                   "Unlocks a model that has no entities.", http::kUnlock);
  routes.add_async("POST", "/model/{name}/{version}/changeLevel/{level}", acts("model.level"),
                   "Sets how far entity writes may change the schema.", http::kSetLevel);
  routes.add_async("DELETE", "/model/{name}/{version}", acts("model.delete"),
                   "Deletes a model that has no entities.", http::kDeleteModel);
  routes.add_async("PUT", "/model/{name}/{version}/indexes", put_indexes,
                   "Declares the indexed fields; the indexes are filled in the background.",
                   http::kPutIndexes);
  routes.add("GET", "/model/{name}/{version}/indexes", get_indexes,
             "The declared indexes and whether they are ready.", http::kGetIndexes);
  routes.add_async("PUT", "/model/{name}/{version}/unique-keys", put_unique,
                   "Declares the unique keys: fields whose values must differ between entities.",
                   http::kPutUnique);
  routes.add("GET", "/model/{name}/{version}/unique-keys", get_unique, "The unique keys.",
             http::kGetUnique);
}

}  // namespace pawl::entities

#include "faces/entities/grpc/exchange.h"

#include <fmt/format.h>

#include "faces/entities/http/problem.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

// The members that the schemas of the replies require, with empty values.
constexpr std::string_view kNoIds = R"(,"transactionInfo":{"entityIds":[]})";
constexpr std::string_view kNoDeletion =
    R"(,"model":{"name":"","version":0},"transactionId":"00000000-0000-0000-0000-000000000000")";
constexpr std::string_view kNoDeletions = R"(,"entityIds":[],"modelId":"","numDeleted":0)";
constexpr std::string_view kNoEntity = R"(,"payload":{"type":"JSON","data":null})";
constexpr std::string_view kNoSnapshot =
    R"(,"status":{"snapshotId":"00000000-0000-0000-0000-000000000000","status":"FAILED","entitiesCount":0})";
constexpr std::string_view kNoStats = R"(,"modelName":"","modelVersion":0,"count":0)";
constexpr std::string_view kNoStateStats =
    R"(,"modelName":"","modelVersion":0,"state":"","count":0)";
constexpr std::string_view kNoChange =
    R"(,"changeMeta":{"changeType":"","timeOfChange":"0001-01-01T00:00:00Z","user":""})";
constexpr std::string_view kNoModel = R"(,"modelId":"00000000-0000-0000-0000-000000000000")";
constexpr std::string_view kNoExport =
    R"(,"modelId":"00000000-0000-0000-0000-000000000000","model":{"name":"","version":0},"payload":{})";
constexpr std::string_view kNoModelState =
    R"(,"modelId":"00000000-0000-0000-0000-000000000000","state":"")";
constexpr std::string_view kNoModels = R"(,"models":[])";

// One row per request event. Clients of the original send them by type; the method must be the
// right one too.
constexpr EventRow kEvents[] = {
    {GrpcMethod::manage, "EntityCreateRequest", "EntityTransactionResponse", create_entity, kNoIds},
    {GrpcMethod::manage, "EntityUpdateRequest", "EntityTransactionResponse", update_entity, kNoIds},
    {GrpcMethod::manage, "EntityPatchRequest", "EntityTransactionResponse", patch_entity, kNoIds},
    {GrpcMethod::manage,
     "EntityTransitionRequest",
     "EntityTransitionResponse",
     fire_transition,
     {}},
    {GrpcMethod::manage, "EntityDeleteRequest", "EntityDeleteResponse", delete_entity, kNoDeletion},
    {GrpcMethod::manage_collection, "EntityCreateCollectionRequest", "EntityTransactionResponse",
     create_collection, kNoIds},
    {GrpcMethod::manage_collection, "EntityUpdateCollectionRequest", "EntityTransactionResponse",
     update_collection, kNoIds},
    {GrpcMethod::manage_collection, "EntityDeleteAllRequest", "EntityDeleteAllResponse",
     delete_all_entities, kNoDeletions},
    {GrpcMethod::search, "EntityGetRequest", "EntityResponse", get_entity_event, kNoEntity},
    {GrpcMethod::search, "EntitySnapshotSearchRequest", "EntitySnapshotSearchResponse",
     snapshot_search, kNoSnapshot, "condition"},
    {GrpcMethod::search, "SnapshotGetStatusRequest", "EntitySnapshotSearchResponse",
     snapshot_status, kNoSnapshot},
    {GrpcMethod::search, "SnapshotCancelRequest", "EntitySnapshotSearchResponse", snapshot_cancel,
     kNoSnapshot},
    {GrpcMethod::search_collection, "EntityGetAllRequest", "EntityResponse", get_all_entities,
     kNoEntity},
    {GrpcMethod::search_collection, "EntitySearchRequest", "EntityResponse", search_entities,
     kNoEntity, "condition"},
    {GrpcMethod::search_collection, "EntityStatsGetRequest", "EntityStatsResponse", entity_stats,
     kNoStats},
    {GrpcMethod::search_collection, "EntityStatsByStateGetRequest", "EntityStatsByStateResponse",
     entity_stats_by_state, kNoStateStats},
    {GrpcMethod::search_collection, "EntityChangesMetadataGetRequest",
     "EntityChangesMetadataResponse", entity_changes, kNoChange},
    {GrpcMethod::search_collection, "SnapshotGetRequest", "EntityResponse", snapshot_get,
     kNoEntity},
    {GrpcMethod::model_manage, "EntityModelImportRequest", "EntityModelImportResponse",
     model_import, kNoModel},
    {GrpcMethod::model_manage, "EntityModelExportRequest", "EntityModelExportResponse",
     model_export, kNoExport},
    {GrpcMethod::model_manage, "EntityModelTransitionRequest", "EntityModelTransitionResponse",
     model_transition, kNoModelState},
    {GrpcMethod::model_manage,
     "EntityModelDeleteRequest",
     "EntityModelDeleteResponse",
     model_delete,
     {}},
    {GrpcMethod::model_manage, "EntityModelGetAllRequest", "EntityModelGetAllResponse",
     model_get_all, kNoModels},
    {GrpcMethod::model_manage, "EntityModelSetUniqueKeysRequest",
     "EntityModelSetUniqueKeysResponse", model_unique_keys, kNoModel},
};

}  // namespace

const EventRow* find_event(GrpcMethod call, std::string_view type) {
  for (const EventRow& row : kEvents)
    if (row.call == call && row.request == type) return &row;
  return nullptr;
}

void run_event(const EventRow& row, GrpcExchangePtr exchange) {
  exchange->reply_type = row.reply;
  exchange->required_members = row.required_members;
  // Before the handler, so that a stale token is refused also by events that do not use it.
  auto begun = exchange->service().may_join(exchange->context);
  if (begun) begun = row.handle(exchange);
  if (!begun) exchange->refuse(begun.error());
}

ReplyEvent GrpcExchange::success(std::string_view more) const {
  std::string out = "{\"id\":";
  json::append_string(out, id);
  out += ",\"requestId\":";
  json::append_string(out, id);
  out += ",\"success\":true";
  out += more;
  out += '}';
  return {reply_type, std::move(out)};
}

void GrpcExchange::append_warnings(const json::Value& answer, std::string& more) const {
  const json::Value* warnings = answer.find("warnings");
  if (warnings) more += ",\"warnings\":" + json::print(*warnings);
}

void GrpcExchange::refuse(const Error& error) {
  replies_.push_back(failure(error));
  finish();
}

ReplyEvent GrpcExchange::failure(const Error& error) const {
  Problem p = problem_of(error);
  json::Object shown;
  // A 503 (no member has the tags, or it left) is CLIENT_ERROR with retryable: the client tries
  // again.
  shown.add("code", p.status >= 500 && p.status != 503 ? "SERVER_ERROR" : "CLIENT_ERROR");
  // The cause of an internal error is not shown.
  shown.add("message", p.status == 500 ? fmt::format("{}: internal error", p.code)
                                       : fmt::format("{}: {}", p.code, error.message));
  if (p.retryable) shown.add("retryable", true);
  std::string out = "{\"id\":";
  json::append_string(out, id);
  out += ",\"requestId\":";
  json::append_string(out, id);
  out += ",\"success\":false,\"error\":" + json::print(shown);
  out += required_members;
  out += '}';
  return {reply_type, std::move(out)};
}

Result<std::pair<std::string, int32_t>> GrpcExchange::model(const json::Value& from) const {
  const json::Value* model = from.find("model");
  const json::Value* version = model ? model->find("version") : nullptr;
  auto number = version ? version->as_int64() : std::nullopt;
  std::string_view name = model ? model->string_or("name") : "";
  if (name.empty() || !number || *number < INT32_MIN || *number > INT32_MAX)
    return fail(Code::invalid, "BAD_REQUEST",
                "the request needs a 'model' with 'name' and 'version'");
  return std::pair(std::string(name), static_cast<int32_t>(*number));
}

Result<std::string> GrpcExchange::uuid(const json::Value& from, std::string_view name) const {
  std::string_view text = from.string_or(name);
  if (!is_uuid(text))
    return fail(Code::invalid, "BAD_REQUEST", fmt::format("'{}' is '{}', not a UUID", name, text));
  return std::string(text);
}

Result<std::optional<Time>> GrpcExchange::time(std::string_view name) const {
  const json::Value* text = payload.find(name);
  if (!text || text->is_null()) return std::optional<Time>();
  auto time =
      text->is_string() ? parse_rfc3339(text->string()) : Result<Time>(fail(Code::invalid, "", ""));
  if (!time)
    return fail(Code::invalid, "BAD_REQUEST", fmt::format("'{}' is not an RFC 3339 time", name));
  return std::optional(*time);
}

int64_t GrpcExchange::number(std::string_view name, int64_t default_value) const {
  const json::Value* v = payload.find(name);
  return v && v->is_number() ? v->as_int64().value_or(default_value) : default_value;
}

bool GrpcExchange::has(std::string_view name) const {
  const json::Value* v = payload.find(name);
  return v && !v->is_null();
}

}  // namespace pawl::entities

#include "faces/entities/grpc/exchange.h"

#include <fmt/format.h>

#include "faces/entities/http/problem.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

// What the schemas of the replies require, with nothing in it.
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

constexpr EventRow kEvents[] = {
    {Call5::manage, "EntityCreateRequest", "EntityTransactionResponse", create_entity, kNoIds},
    {Call5::manage, "EntityUpdateRequest", "EntityTransactionResponse", update_entity, kNoIds},
    {Call5::manage, "EntityPatchRequest", "EntityTransactionResponse", patch_entity, kNoIds},
    {Call5::manage, "EntityTransitionRequest", "EntityTransitionResponse", fire_transition, {}},
    {Call5::manage, "EntityDeleteRequest", "EntityDeleteResponse", delete_entity, kNoDeletion},
    {Call5::manage_collection, "EntityCreateCollectionRequest", "EntityTransactionResponse",
     create_collection, kNoIds},
    {Call5::manage_collection, "EntityUpdateCollectionRequest", "EntityTransactionResponse",
     update_collection, kNoIds},
    {Call5::manage_collection, "EntityDeleteAllRequest", "EntityDeleteAllResponse",
     delete_all_entities, kNoDeletions},
    {Call5::search, "EntityGetRequest", "EntityResponse", get_entity_event, kNoEntity},
    {Call5::search, "EntitySnapshotSearchRequest", "EntitySnapshotSearchResponse", snapshot_search,
     kNoSnapshot},
    {Call5::search, "SnapshotGetStatusRequest", "EntitySnapshotSearchResponse", snapshot_status,
     kNoSnapshot},
    {Call5::search, "SnapshotCancelRequest", "EntitySnapshotSearchResponse", snapshot_cancel,
     kNoSnapshot},
    {Call5::search_collection, "EntityGetAllRequest", "EntityResponse", get_all_entities,
     kNoEntity},
    {Call5::search_collection, "EntitySearchRequest", "EntityResponse", search_entities, kNoEntity},
    {Call5::search_collection, "EntityStatsGetRequest", "EntityStatsResponse", entity_stats,
     kNoStats},
    {Call5::search_collection, "EntityStatsByStateGetRequest", "EntityStatsByStateResponse",
     entity_stats_by_state, kNoStateStats},
    {Call5::search_collection, "EntityChangesMetadataGetRequest", "EntityChangesMetadataResponse",
     entity_changes, kNoChange},
    {Call5::search_collection, "SnapshotGetRequest", "EntityResponse", snapshot_get, kNoEntity},
    {Call5::model_manage, "EntityModelImportRequest", "EntityModelImportResponse", model_import,
     kNoModel},
    {Call5::model_manage, "EntityModelExportRequest", "EntityModelExportResponse", model_export,
     kNoExport},
    {Call5::model_manage, "EntityModelTransitionRequest", "EntityModelTransitionResponse",
     model_transition, kNoModelState},
    {Call5::model_manage,
     "EntityModelDeleteRequest",
     "EntityModelDeleteResponse",
     model_delete,
     {}},
    {Call5::model_manage, "EntityModelGetAllRequest", "EntityModelGetAllResponse", model_get_all,
     kNoModels},
    {Call5::model_manage, "EntityModelSetUniqueKeysRequest", "EntityModelSetUniqueKeysResponse",
     model_unique_keys, kNoModel},
};

}  // namespace

const EventRow* find_event(Call5 call, std::string_view type) {
  for (const EventRow& row : kEvents)
    if (row.call == call && row.request == type) return &row;
  return nullptr;
}

void run_event(const EventRow& row, ExchangePtr exchange) {
  exchange->reply_type = row.reply;
  exchange->empty = row.empty;
  auto begun = exchange->service().may_join(exchange->who);
  if (begun) begun = row.handle(exchange);
  if (!begun) exchange->refuse(begun.error());
}

void Exchange::say(std::string_view more) {
  std::string out = "{\"id\":";
  json::append_string(out, id);
  out += ",\"requestId\":";
  json::append_string(out, id);
  out += ",\"success\":true";
  out += more;
  out += '}';
  replies_.push_back({reply_type, std::move(out)});
}

void Exchange::say_warnings(const json::Value& answer, std::string& more) const {
  const json::Value* warnings = answer.find("warnings");
  if (warnings) more += ",\"warnings\":" + json::print(*warnings);
}

void Exchange::end() { finished_(std::move(replies_)); }

void Exchange::refuse(const Error& error) {
  Problem p = problem_of(error);
  json::Object shown;
  shown.add("code", p.status >= 500 && p.status != 503 ? "SERVER_ERROR" : "CLIENT_ERROR");
  shown.add("message", p.status == 500 ? fmt::format("{}: internal error", p.code)
                                       : fmt::format("{}: {}", p.code, error.message));
  if (p.retryable) shown.add("retryable", true);
  std::string out = "{\"id\":";
  json::append_string(out, id);
  out += ",\"requestId\":";
  json::append_string(out, id);
  out += ",\"success\":false,\"error\":" + json::print(shown);
  out += empty;
  out += '}';
  replies_.push_back({reply_type, std::move(out)});
  end();
}

Result<std::pair<std::string, int32_t>> Exchange::model(const json::Value& from) const {
  const json::Value* model = from.find("model");
  const json::Value* version = model ? model->find("version") : nullptr;
  auto number = version ? version->as_int64() : std::nullopt;
  std::string_view name = model ? model->string_or("name") : "";
  if (name.empty() || !number || *number < INT32_MIN || *number > INT32_MAX)
    return fail(Code::invalid, "BAD_REQUEST",
                "the request needs a 'model' with 'name' and 'version'");
  return std::pair(std::string(name), static_cast<int32_t>(*number));
}

Result<std::string> Exchange::uuid(const json::Value& from, std::string_view name) const {
  std::string_view text = from.string_or(name);
  if (!is_uuid(text))
    return fail(Code::invalid, "BAD_REQUEST", fmt::format("'{}' is '{}', not a UUID", name, text));
  return std::string(text);
}

Result<std::optional<Time>> Exchange::time(std::string_view name) const {
  const json::Value* text = payload.find(name);
  if (!text || text->is_null()) return std::optional<Time>();
  auto time =
      text->is_string() ? parse_rfc3339(text->string()) : Result<Time>(fail(Code::invalid, "", ""));
  if (!time)
    return fail(Code::invalid, "BAD_REQUEST", fmt::format("'{}' is not an RFC 3339 time", name));
  return std::optional(*time);
}

int64_t Exchange::number(std::string_view name, int64_t default_value) const {
  const json::Value* v = payload.find(name);
  return v && v->is_number() ? v->as_int64().value_or(default_value) : default_value;
}

bool Exchange::has(std::string_view name) const {
  const json::Value* v = payload.find(name);
  return v && !v->is_null();
}

}  // namespace pawl::entities

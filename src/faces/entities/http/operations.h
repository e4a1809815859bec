#pragma once
// The answers of the entities routes, and their operations.

#include "faces/entities/flow/shapes.h"
#include "faces/entities/http/shapes.h"
#include "faces/entities/search/groups.h"

namespace pawl::entities::http {

inline constexpr AnswerShape kProblem{
    "Problem",
    {text("type").example(R"("about:blank")"), text("title").example(R"("Not Found")"),
     integer("status").example("404"), text("detail", "The error code, what happened, what to do."),
     text("instance", "The path of the request."),
     text("ticket", "Of an internal error: its number in the log.").optional(),
     variables("properties", "errorCode, and more of some codes.")
         .example(R"({"errorCode":"ENTITY_NOT_FOUND"})")}};

inline constexpr std::string_view kProblemJson = "application/problem+json";

// Paths.
inline constexpr wire::Member kNameRow = text("name", "The name of the model.");
inline constexpr wire::Member kVersionRow = integer("version", "The version of the model.");
inline constexpr wire::Member kFormatRow = choice("format", {"JSON", "XML"}, "The format.");
inline constexpr RequestShape kModelPath{"", {kNameRow, kVersionRow}};
inline constexpr RequestShape kIdPath{"", {uuid("id", "The entity.")}};
inline constexpr RequestShape kFormatPath{"", {kFormatRow}};
inline constexpr RequestShape kFormatIdPath{"", {kFormatRow, uuid("id", "The entity.")}};
inline constexpr RequestShape kFirePath{
    "", {kFormatRow, uuid("id", "The entity."), text("transition", "The transition to fire.")}};
inline constexpr RequestShape kFormatModelPath{"", {kFormatRow, kNameRow, kVersionRow}};
inline constexpr RequestShape kImportPath{
    "",
    {choice("dataFormat", {"JSON", "XML"}, "The format of the sample."),
     choice("converter", {"SAMPLE_DATA"}), kNameRow, kVersionRow}};
inline constexpr RequestShape kExportPath{
    "", {choice("converter", {"JSON_SCHEMA", "SIMPLE_VIEW"}), kNameRow, kVersionRow}};
inline constexpr RequestShape kLevelPath{
    "",
    {kNameRow, kVersionRow,
     choice("level", {"ARRAY_LENGTH", "ARRAY_ELEMENTS", "TYPE", "STRUCTURAL"},
            "How far a write may change the schema.")}};
inline constexpr RequestShape kJobPath{"", {uuid("job", "The search job.")}};
inline constexpr RequestShape kFinishedPath{
    "", {uuid("id", "The entity."), uuid("tx", "The transaction.")}};
inline constexpr RequestShape kSubjectPath{"", {text("subject", "The subject of the message.")}};
inline constexpr RequestShape kMessagePath{"", {uuid("id", "The message.")}};
inline constexpr RequestShape kClientPath{"", {text("id", "The id of the client.")}};
inline constexpr RequestShape kKeyPath{"", {text("id", "The kid of the key.")}};
inline constexpr RequestShape kTopicPath{"", {text("topic", "errors.CONFLICT, or crud.md")}};

// Answers.
inline constexpr AnswerShape kModelRef{"ModelKey",
                                       {text("name").example(R"("order")"), integer("version")}};
inline constexpr AnswerShape kMeta{
    "EntityMeta",
    {uuid("id"), object("modelKey", "", kModelRef).optional(), text("state").example(R"("NEW")"),
     time("creationDate"), time("lastUpdateTime"), uuid("transactionId"),
     text("transitionForLatestSave").optional()}};
inline constexpr AnswerShape kEntity{
    "Entity",
    {choice("type", {"ENTITY"}), any("data").example(R"({"name":"a"})"),
     object("meta", "", kMeta)}};
inline constexpr AnswerShape kDeleted{
    "DeletedEntity", {uuid("id"), object("modelKey", "", kModelRef), uuid("transactionId")}};
inline constexpr AnswerShape kRemoval{
    "RemovalCounts",
    {count("numberOfEntitites"), count("numberOfEntititesRemoved"), variables("idToError")}};
inline constexpr AnswerShape kRemoved{
    "RemovedEntities",
    {text("entityModelClassId"), object("deleteResult", "", kRemoval), texts("ids").optional()}};
inline constexpr AnswerShape kChange{
    "EntityChange",
    {choice("changeType", {"CREATED", "UPDATED", "DELETED"}), time("timeOfChange"), text("user"),
     uuid("transactionId").optional()}};
inline constexpr AnswerShape kWritten{
    "WrittenEntities",
    {uuid("transactionId").optional(), texts("entityIds"),
     list("failed", "Of a collection: the updates that were refused.", Kind::any).optional(),
     texts("warnings").optional(),
     variables("error", "Of a chunk that failed: code, message, chunkIndex.").optional()}};
inline constexpr AnswerShape kActed{
    "ModelAnswer",
    {flag("success"), text("message"), text("modelId"), object("modelKey", "", kModelRef)}};
inline constexpr AnswerShape kModelRow{
    "ModelRow",
    {text("id"), text("modelName").example(R"("order")"), integer("modelVersion"),
     choice("currentState", {"LOCKED", "UNLOCKED"}), time("modelUpdateDate")}};
inline constexpr AnswerShape kUniqueKeyShown{"UniqueKey",
                                             {text("id").example(R"("by-name")"), texts("fields")}};
inline constexpr AnswerShape kExported{
    "ExportedModel",
    {choice("currentState", {"LOCKED", "UNLOCKED"}), any("model"),
     list("uniqueKeys", "", kUniqueKeyShown).optional()}};
inline constexpr AnswerShape kIndexRow{
    "ModelIndex", {text("path").example(R"("$.name")"), choice("state", {"READY", "BUILDING"})}};
inline constexpr AnswerShape kIndexesShown{
    "ModelIndexes", {list("indexes", "", kIndexRow), flag("fill").optional()}};
inline constexpr AnswerShape kUniqueKeysShown{"UniqueKeys",
                                              {list("uniqueKeys", "", kUniqueKeyShown)}};
inline constexpr AnswerShape kSuccess{"Success", {flag("success")}};
inline constexpr AnswerShape kFlows{
    "ExportedWorkflows",
    {text("entityName").example(R"("order")"), integer("modelVersion"),
     list("workflows", "", document::kWorkflow)}};
inline constexpr AnswerShape kPlan{"SearchPlan",
                                   {text("index").or_null(), count("rowsRead"), count("matched"),
                                    choice("access", {"SCAN", "INDEX"})}};
inline constexpr AnswerShape kJobStatus{
    "SearchJobStatus",
    {text("searchJobStatus").example(R"("SUCCESSFUL")"), time("createTime"),
     time("finishTime").optional(), time("expirationDate"), count("entitiesCount"),
     count("calculationTimeMillis")}};
inline constexpr AnswerShape kPageRow{
    "PageInfo", {count("number"), count("size"), count("totalElements"), count("totalPages")}};
inline constexpr AnswerShape kPage{"SearchJobPage",
                                   {list("content", "", kEntity), object("page", "", kPageRow)}};
inline constexpr AnswerShape kCancelled{
    "CancelledSearchJob", {flag("isCancelled"), flag("cancelled"), text("currentSearchJobStatus")}};
inline constexpr AnswerShape kCount{
    "ModelCount",
    {text("modelName").example(R"("order")"), integer("modelVersion"), count("count")}};
inline constexpr AnswerShape kStateCount{"StateCount", kCount, {text("state")}};
inline constexpr AnswerShape kGroupKey{
    "GroupKeyPart", {text("path").example(R"("state")"), text("value").or_null()}};
inline constexpr AnswerShape kGroup{
    "Group",
    {list("groupKey", "", kGroupKey), count("count"),
     variables("aggregations", "Numbers by alias; null: there are none.").optional()}};
inline constexpr AnswerShape kAuditEvent{
    "AuditEvent",
    {choice("auditEventType", {"EntityChange", "StateMachine"}), text("severity"), time("utcTime"),
     integer("microsTime"), text("changeType").optional(), flag("system").optional(),
     variables("actor").optional(), text("entityId").optional(), uuid("transactionId").optional(),
     text("eventType").optional(), text("details").optional(), any("data").optional(),
     text("state").optional()}};
inline constexpr AnswerShape kCursor{"AuditCursor",
                                     {flag("hasNext"), text("nextCursor").optional()}};
inline constexpr AnswerShape kAudit{
    "AuditPage",
    {list("items", "The newest first.", kAuditEvent), object("pagination", "", kCursor)}};
inline constexpr AnswerShape kMessageShown{
    "Message", {variables("header"), variables("metaData"), any("content")}};
inline constexpr AnswerShape kStored{"StoredMessage", {texts("entityIds"), uuid("transactionId")}};
inline constexpr AnswerShape kDropped{"DeletedMessages",
                                      {texts("entityIds"), flag("success").optional()}};
inline constexpr AnswerShape kHealthShown{"Health", {choice("status", {"UP"})}};
inline constexpr AnswerShape kAccountShown{"Account", {variables("userAccountInfo")}};
inline constexpr AnswerShape kLevelShown{
    "LogLevel", {choice("level", kLevel["level"].choices), text("previous").optional()}};
inline constexpr AnswerShape kSampler{"TraceSampler",
                                      {text("sampler"), number("ratio"), flag("parent_based")}};
inline constexpr AnswerShape kClient{
    "MachineClient", {text("clientId"), text("tenantId"), text("userId"), texts("roles")}};
inline constexpr AnswerShape kSecret{"MachineClientSecret",
                                     {text("clientId"), text("clientSecret")}};
inline constexpr AnswerShape kPair{"KeyPair", {text("kid"), flag("active"), text("createdAt")}};
inline constexpr AnswerShape kTrusted{
    "TrustedKey",
    {text("kid"), text("audience"), flag("active"), text("validFrom"), text("validTo").optional()}};
inline constexpr AnswerShape kJwks{"JsonWebKeys", {list("keys", "", Kind::any)}};
inline constexpr AnswerShape kTokenShown{
    "AccessToken",
    {text("access_token"), text("token_type").example(R"("Bearer")"), count("expires_in"),
     text("issued_token_type").optional()}};
inline constexpr AnswerShape kOauthError{
    "OauthError",
    {text("error").example(R"("invalid_client")"), text("error_description").optional()}};
inline constexpr AnswerShape kTopic{
    "HelpTopic",
    {text("topic"), texts("path"), text("title"), text("synopsis"), text("body"),
     list("sections", "", Kind::any), texts("see_also"), text("stability"),
     list("actions", "", Kind::any), texts("children").optional()}};
inline constexpr AnswerShape kTopics{
    "HelpTopics", {integer("schema"), text("version"), list("topics", "", kTopic)}};

// Operations.
inline constexpr wire::Type kDocument = wire::Type(Kind::any).with(R"({"name":"a","amount":10})");
inline constexpr wire::Type kTexts = wire::list_of(Kind::text);
inline constexpr wire::Type kUuid = [] {
  wire::Type out(Kind::text);
  out.format = "uuid";
  return out;
}();
constexpr Operation reading(std::string_view id, wire::Type answer, const wire::AnyShape* path,
                            const wire::AnyShape* query = nullptr,
                            const wire::AnyShape* headers = &kJoinHeaders) {
  return {.id = id,
          .path = path,
          .query = query,
          .headers = headers,
          .replies = {{200, "What is asked for.", answer}},
          .errors = {409, 422}};
}
// Of a write: the model or the entity may be in another state (409), gone (404), or changed by
// somebody else (412); the document may break a unique key (422).
constexpr Operation writing(std::string_view id, wire::Type answer, const wire::AnyShape* path,
                            wire::Body body, const wire::AnyShape* query = nullptr,
                            const wire::AnyShape* headers = &kWriteHeaders) {
  return {.id = id,
          .path = path,
          .query = query,
          .headers = headers,
          .body = body,
          .replies = {{200, "What came of it.", answer}},
          .errors = {404, 409, 412, 415, 422, 501}};
}
inline constexpr wire::Body kDocumentBody{kDocument, wire::kJson, kXml};

// Models and workflows.
inline constexpr Operation kImportModel =
    writing("importModel", kUuid, &kImportPath, kDocumentBody);
inline constexpr Operation kExportModel = reading("exportModel", kExported, &kExportPath);
inline constexpr Operation kValidate{.id = "validateDocument",
                                     .path = &kModelPath,
                                     .headers = &kJoinHeaders,
                                     .body = {kDocument},
                                     .replies = {{200, "Whether it fits.", kActed}},
                                     .errors = {409, 422}};
inline constexpr Operation kListModels = reading("listModels", wire::list_of(kModelRow), nullptr);
inline constexpr Operation kListModelsSlash =
    reading("listModelsWithSlash", wire::list_of(kModelRow), nullptr);
inline constexpr Operation kLock = writing("lockModel", kActed, &kModelPath, {});
inline constexpr Operation kUnlock = writing("unlockModel", kActed, &kModelPath, {});
inline constexpr Operation kSetLevel = writing("setChangeLevel", kActed, &kLevelPath, {});
inline constexpr Operation kDeleteModel = writing("deleteModel", kActed, &kModelPath, {});
inline constexpr Operation kPutIndexes =
    writing("putIndexes", kIndexesShown, &kModelPath, {kIndexes});
inline constexpr Operation kGetIndexes = reading("getIndexes", kIndexesShown, &kModelPath);
inline constexpr Operation kPutUnique =
    writing("putUniqueKeys", kActed, &kModelPath, {kUniqueKeys});
inline constexpr Operation kGetUnique = reading("getUniqueKeys", kUniqueKeysShown, &kModelPath);
inline constexpr Operation kImportFlows =
    writing("importWorkflows", kSuccess, &kModelPath, {document::kExample});
inline constexpr Operation kExportFlows = reading("exportWorkflows", kFlows, &kModelPath);

// Entities.
inline constexpr Operation kCreate = writing("createEntities", wire::list_of(kWritten),
                                             &kFormatModelPath, kDocumentBody, &kWindowQuery);
inline constexpr Operation kCreateCollection =
    writing("createEntityCollection", wire::list_of(kWritten), &kFormatPath,
            {wire::list_of(kNewItem)}, &kWindowQuery);
inline constexpr Operation kUpdateCollection =
    writing("updateEntityCollection", wire::list_of(kWritten), &kFormatPath,
            {wire::list_of(kUpdateItem)}, &kWindowQuery);
inline constexpr Operation kGetEntity = reading("getEntity", kEntity, &kIdPath, &kAsOfQuery);
inline constexpr Operation kDeleteEntity = writing("deleteEntity", kDeleted, &kIdPath, {});
inline constexpr Operation kGetChanges =
    reading("listEntityChanges", wire::list_of(kChange), &kIdPath, &kAtQuery);
inline constexpr Operation kGetTransitions =
    reading("listTransitions", kTexts, &kIdPath, &kAsOfQuery);
inline constexpr Operation kFetchTransitions = [] {
  Operation out = reading("fetchTransitions", kTexts, nullptr, &kEntityQuery);
  out.errors[5] = 404;
  return out;
}();
inline constexpr Operation kLaunch =
    writing("launchTransition", kWritten, nullptr, {}, &kLaunchQuery);
inline constexpr Operation kUpdate =
    writing("updateEntity", kWritten, &kFormatIdPath, kDocumentBody, nullptr, &kUpdateHeaders);
inline constexpr Operation kUpdateAndFire =
    writing("updateEntityAndFire", kWritten, &kFirePath, kDocumentBody, nullptr, &kUpdateHeaders);
inline constexpr wire::Body kPatchBody{kDocument, wire::kJson, "application/merge-patch+json"};
inline constexpr Operation kPatch =
    writing("patchEntity", kWritten, &kFormatIdPath, kPatchBody, nullptr, &kUpdateHeaders);
inline constexpr Operation kPatchAndFire =
    writing("patchEntityAndFire", kWritten, &kFirePath, kPatchBody, nullptr, &kUpdateHeaders);
inline constexpr Operation kListEntities =
    reading("listEntities", wire::list_of(kEntity), &kModelPath, &kListQuery);
inline constexpr wire::Type kCondition = wire::document_type("EntityCondition");
inline constexpr Operation kDeleteEntities = writing(
    "deleteEntities", kRemoved, &kModelPath, wire::optional_body(kCondition), &kDeleteQuery);

// Statistics and searches.
inline constexpr Operation kCountAll = reading("countEntities", wire::list_of(kCount), nullptr);
inline constexpr Operation kCountOne = reading("countEntitiesOfModel", kCount, &kModelPath);
inline constexpr Operation kCountStates =
    reading("countEntitiesByState", wire::list_of(kStateCount), nullptr, &kStatesQuery);
inline constexpr Operation kCountModelStates =
    reading("countEntitiesOfModelByState", wire::list_of(kStateCount), &kModelPath, &kStatesQuery);
inline constexpr Operation kGroupEntities{
    .id = "groupEntities",
    .path = &kModelPath,
    .query = &kAtQuery,
    .headers = &kJoinHeaders,
    .body = {kGrouping},
    .replies = {{200, "The groups, the largest first.", wire::list_of(kGroup)}},
    .errors = {409, 422}};
constexpr Operation searching(std::string_view id, wire::Type answer, const wire::AnyShape* query) {
  return {.id = id,
          .path = &kModelPath,
          .query = query,
          .headers = &kWriteHeaders,
          .body = {kCondition},
          .replies = {{200, "The result.", answer}},
          .errors = {409, 422}};
}
inline constexpr Operation kSearch = [] {
  Operation out = searching("searchEntities", kPlan, &kDirectQuery);
  out.replies[1] = {200, "", Kind::octets, "application/x-ndjson"};
  return out;
}();
inline constexpr Operation kSearchArray =
    searching("searchEntitiesAsArray", wire::list_of(kEntity), &kSearchQuery);
inline constexpr Operation kStartJob = searching("startSearchJob", kUuid, &kJobQuery);
inline constexpr Operation kGetJob = reading("getSearchJobStatus", kJobStatus, &kJobPath);
inline constexpr Operation kGetResults =
    reading("getSearchJobResult", kPage, &kJobPath, &kResultsQuery);
inline constexpr Operation kCancelJob = writing("cancelSearchJob", kCancelled, &kJobPath, {});

// Audit and messages.
inline constexpr Operation kGetAudit = reading("listAuditEvents", kAudit, &kIdPath, &kAuditQuery);
inline constexpr Operation kGetFinished = reading("getFinishedEvent", kAuditEvent, &kFinishedPath);
inline constexpr Operation kNewMessage = writing(
    "createMessage", wire::list_of(kStored), &kSubjectPath, {kMessage}, nullptr, &kMessageHeaders);
inline constexpr Operation kGetMessage = reading("getMessage", kMessageShown, &kMessagePath);
inline constexpr Operation kGetMessageText =
    reading("getMessageAsText", kMessageShown, &kMessagePath);
inline constexpr Operation kDeleteMessage = writing("deleteMessage", kDropped, &kMessagePath, {});
inline constexpr Operation kDeleteMessages =
    writing("deleteMessages", wire::list_of(kDropped), nullptr,
            {kTexts.with(R"(["8f14e45f-ceea-4e7a-9c1d-2b0f6c3a5d11"])")});

// The account, tokens and keys. Without authentication there are none (501).
inline constexpr Operation kHealth{.id = "getHealth",
                                   .replies = {{200, "The server is up.", kHealthShown}}};
inline constexpr Operation kAccount = reading("getAccount", kAccountShown, nullptr);
inline constexpr Operation kGetLevel = reading("getLogLevel", kLevelShown, nullptr);
inline constexpr Operation kSetLogLevel = writing("setLogLevel", kLevelShown, nullptr, {kLevel});
inline constexpr Operation kGetSampler = reading("getTraceSampler", kSampler, nullptr);
constexpr Operation managing(std::string_view id, wire::Reply reply, const wire::AnyShape* path,
                             wire::Body body = {}) {
  return {.id = id,
          .path = path,
          .headers = &kJoinHeaders,
          .body = body,
          .replies = {reply},
          .errors = {409, 422, 501}};
}
inline constexpr Operation kListClients =
    managing("listMachineClients", {200, "The clients.", wire::list_of(kClient)}, nullptr);
inline constexpr Operation kNewClientOp =
    managing("createMachineClient", {201, "Its secret.", kSecret}, nullptr, {kNewClient});
inline constexpr Operation kDeleteClient =
    managing("deleteMachineClient", {204, "The client is deleted."}, &kClientPath);
inline constexpr Operation kResetSecret =
    managing("resetMachineClientSecret", {200, "The new secret.", kSecret}, &kClientPath);
inline constexpr Operation kListPairs =
    managing("listKeyPairs", {200, "The key pairs.", wire::list_of(kPair)}, nullptr);
inline constexpr Operation kIssuePair =
    managing("createKeyPair", {201, "The key pair.", kPair}, nullptr);
inline constexpr Operation kCurrentPair = [] {
  Operation out = managing("getCurrentKeyPair", {200, "The key pair.", kPair}, nullptr);
  out.errors[5] = 404;
  return out;
}();
inline constexpr Operation kInvalidatePair =
    managing("invalidateKeyPair", {200, "It is inactive."}, &kKeyPath);
inline constexpr Operation kReactivatePair =
    managing("reactivateKeyPair", {200, "It is active."}, &kKeyPath);
inline constexpr Operation kDeletePair =
    managing("deleteKeyPair", {204, "It is deleted."}, &kKeyPath);
inline constexpr Operation kListTrusted =
    managing("listTrustedKeys", {200, "The keys.", wire::list_of(kTrusted)}, nullptr);
inline constexpr Operation kTrust =
    managing("addTrustedKey", {201, "The key.", kTrusted}, nullptr, {kTrustKey});
inline constexpr Operation kInvalidateTrusted =
    managing("invalidateTrustedKey", {200, "It is inactive."}, &kKeyPath);
inline constexpr Operation kReactivateTrusted =
    managing("reactivateTrustedKey", {200, "It is active."}, &kKeyPath);
inline constexpr Operation kDeleteTrusted =
    managing("deleteTrustedKey", {204, "It is deleted."}, &kKeyPath);
inline constexpr Operation kGetJwks{
    .id = "getJsonWebKeys", .replies = {{200, "The public keys.", kJwks}}, .errors = {404}};
inline constexpr Operation kIssueToken{
    .id = "issueToken",
    .body = {wire::Type(kToken), "application/x-www-form-urlencoded"},
    .replies = {{200, "The token.", kTokenShown},
                {400, "The request is refused.", kOauthError},
                {401, "The client is unknown, or its secret wrong.", kOauthError},
                {403, "The subject belongs to another tenant.", kOauthError},
                {429, "Too many failed logins.", kOauthError},
                {429, "", kProblem, kProblemJson}},
    .errors = {501},
    .basic = true};

// Help.
constexpr Operation helping(std::string_view id) {
  return {.id = id,
          .path = &kTopicPath,
          .replies = {{200, "The topic.", kTopic},
                      {200, "", Kind::octets, "text/markdown"},
                      {400, "No name of a topic.", kProblem, kProblemJson},
                      {404, "There is no such topic.", kProblem, kProblemJson}}};
}
inline constexpr Operation kHelp{.id = "listHelpTopics",
                                 .replies = {{200, "All topics.", kTopics}}};
inline constexpr Operation kHelpTopic = helping("getHelpTopic");
inline constexpr Operation kApiHelp{.id = "listApiHelpTopics",
                                    .replies = {{200, "All topics.", kTopics}}};
inline constexpr Operation kApiHelpTopic = helping("getApiHelpTopic");

}  // namespace pawl::entities::http

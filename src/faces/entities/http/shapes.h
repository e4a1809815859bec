#pragma once
// The shapes of bodies and queries of the entities routes, from which the handlers read.

#include "wire/operation.h"

namespace pawl::entities::http {

using namespace wire::row;  // tables name their rows by type
using wire::AnswerShape;
using wire::Kind;
using wire::Operation;
using wire::RequestShape;

inline constexpr std::string_view kXml = "application/xml";

// Queries.
inline constexpr RequestShape kAtQuery{
    "", {time("pointInTime", "Read as it was at this time; none: now.")}};
inline constexpr RequestShape kAsOfQuery{
    "", kAtQuery, {uuid("transactionId", "Or: as this transaction left it.")}};
inline constexpr RequestShape kListQuery{
    "",
    kAtQuery,
    {integer("pageSize", "How many.").range(0, 10'000).by_default(20),
     integer("pageNumber", "The number of the page, from 0 on.").range(0, 214'748).by_default(0)}};
inline constexpr RequestShape kDeleteQuery{
    "", kAtQuery, {flag("verbose", "List the ids of the deleted entities.").by_default(false)}};
inline constexpr RequestShape kWindowQuery{
    "",
    {integer("transactionWindow", "Entities of one transaction.").range(1, 1000).by_default(100)}};
inline constexpr RequestShape kEntityQuery{
    "",
    kAsOfQuery,
    {text("entityClass", "name.version of the model.").required().example(R"("order.1")"),
     uuid("entityId", "The entity.").required()}};
inline constexpr RequestShape kLaunchQuery{
    "",
    {uuid("entityId", "The entity.").required(),
     text("transitionName", "The transition.").required().example(R"("approve")"),
     text("entityClass", "Not used.")}};
inline constexpr RequestShape kSearchQuery{
    "",
    kAtQuery,
    {texts("sort", "A field to sort by; may be repeated."),
     integer("limit", "How many; 0: 1000.").range(0, 10'000).by_default(1000)}};
inline constexpr RequestShape kDirectQuery{
    "",
    kSearchQuery,
    {flag("explain", "Say how the search was done, without its result.").by_default(false)}};
inline constexpr RequestShape kJobQuery{
    "", kAtQuery, {texts("sort", "A field to sort by; may be repeated.")}};
inline constexpr RequestShape kResultsQuery{
    "",
    {integer("pageSize", "How many; 0: 1000.").range(std::nullopt, 10'000).by_default(1000),
     integer("pageNumber", "The number of the page, from 0 on.")
         .range(0, INT32_MAX)
         .by_default(0)}};
inline constexpr RequestShape kStatesQuery{
    "", {texts("states", "Only these states; may be repeated.")}};
inline constexpr RequestShape kAuditQuery{
    "",
    {texts("eventType", "EntityChange or StateMachine; may be repeated."),
     text("severity", "INFO is the only one."), uuid("transactionId", "Only its events."),
     time("fromUtcTime"), time("toUtcTime"),
     integer("limit", "How many, at most 1000.").range(1, std::nullopt).by_default(20),
     text("cursor", "The nextCursor of the page before.")}};

// Headers.
inline constexpr RequestShape kJoinHeaders{
    "", {text("X-Tx-Token", "The token of a processor call: take part in its transaction.")}};
inline constexpr RequestShape kWriteHeaders{
    "",
    wire::kIdempotencyHeader,
    {text("X-Tx-Token", "The token of a processor call: take part in its transaction.")}};
inline constexpr RequestShape kUpdateHeaders{
    "",
    kWriteHeaders,
    {text("If-Match", "The transactionId that was read: refuse when another came after it.")}};
inline constexpr RequestShape kMessageHeaders{
    "",
    wire::kIdempotencyHeader,
    {text("X-Message-ID"), text("X-User-ID"), text("X-Recipient"), text("X-Reply-To"),
     text("X-Correlation-ID")}};

// Bodies.
inline constexpr RequestShape kModelKey{
    "ModelKeyRequest",
    {text("name").required().example(R"("order")"), integer("version").required()}};
inline constexpr RequestShape kNewItem{
    "NewEntity",
    {object("model", "The model.", kModelKey).required(),
     text("payload", "The document, as a string.").required().example(R"("{\"name\":\"a\"}")")}};
inline constexpr RequestShape kUpdateItem{
    "EntityUpdate",
    {uuid("id", "The entity.").required(),
     text("payload", "The document, as a string.").required().example(R"("{\"name\":\"a\"}")"),
     text("transition", "The transition to fire; none: automatic ones."),
     text("ifMatch", "The transactionId that was read.")}};
inline constexpr RequestShape kLevel{
    "LogLevelRequest", {choice("level", {"debug", "info", "warn", "error", "off"}).required()}};
inline constexpr RequestShape kNewClient{
    "MachineClientRequest",
    {text("userId", "Who the client acts as.").required().example(R"("worker")"),
     texts("roles", "Its roles.").required().example(R"(["worker"])"),
     text("tenantId", "Its tenant; none: the caller's.")}};
inline constexpr RequestShape kTrustKey{
    "TrustedKeyRequest",
    {text("keyId", "The kid of the key.").required().example(R"("idp-1")"),
     text("kid", "The same."),
     variables("jwk", "An RSA public key of at least 2048 bits: kty, n and e.").required(),
     time("validFrom", "None: from now on."), time("validTo", "None: for ever."),
     text("audience", "The audience of its tokens."),
     texts("issuers", "The issuers of its tokens; none: any.")}};
inline constexpr RequestShape kToken{
    "TokenRequest",
    {choice("grant_type", {"client_credentials", "urn:ietf:params:oauth:grant-type:token-exchange"})
         .required(),
     text("subject_token", "Of an exchange: the token of a trusted issuer."),
     text("subject_token_type", "Of an exchange: urn:ietf:params:oauth:token-type:jwt.")}};
inline constexpr RequestShape kMessage{
    "MessageRequest",
    {any("payload", "The content.").required().example(R"({"text":"hello"})"),
     variables("meta-data", "Values to find it by."), any("metaData", "The same.")}};
inline constexpr RequestShape kIndexes{
    "IndexesRequest",
    {texts("fields", "Paths of fields.").example(R"(["$.name"])"), texts("indexes", "The same."),
     texts("paths", "The same.")}};
inline constexpr RequestShape kUniqueKey{
    "UniqueKeyRequest",
    {text("id", "The name of the key.").required().example(R"("by-name")"),
     texts("fields", "Its fields.").required().example(R"(["$.name"])")}};
inline constexpr RequestShape kUniqueKeys{
    "UniqueKeysRequest",
    {list("uniqueKeys", "The keys.", kUniqueKey)
         .example(R"([{"id":"by-name","fields":["$.name"]}])"),
     list("keys", "The same.", kUniqueKey)}};

}  // namespace pawl::entities::http

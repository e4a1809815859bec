#pragma once
// The shapes of bodies, queries and answers of the lifecycle routes, and their operations.

#include "faces/lifecycle/rule/shapes.h"
#include "faces/lifecycle/type/shapes.h"
#include "wire/operation.h"

namespace pawl::lifecycle::http {

using namespace wire::row;  // tables name their rows by type
using wire::AnswerShape;
using wire::Kind;
using wire::Operation;
using wire::RequestShape;

inline constexpr AnswerShape kError{"LifecycleError",
                                    {text("error", "The operation, what happened and what to do.")
                                         .example(R"("transition: entity not found")")}};

// Paths.
inline constexpr RequestShape kTypePath{"", {text("type", "The workflow type.")}};
inline constexpr RequestShape kInstancePath{
    "", {text("type", "The workflow type."), text("id", "The id of the instance.")}};
inline constexpr RequestShape kIdPath{"", {text("id", "The id of the instance.")}};
inline constexpr RequestShape kRulePath{"", {text("name", "The name of the rule.")}};

// Queries and headers.
inline constexpr RequestShape kListQuery{
    "",
    {text("phase", "Only instances in this phase."),
     flag("active", "Only instances that are not in a terminal phase."),
     count("limit", "How many; 0 or none: all."), count("offset", "How many to leave out first."),
     text("cursor", "The cursor of the page before, from X-Pawl-Cursor."),
     time("updated_after", "Only instances that changed after this time.")}};
inline constexpr RequestShape kWatchQuery{
    "",
    kListQuery,
    {flag("stream", "Watch: a WebSocket, or with Accept: text/event-stream events.")
         .by_default(false),
     count("after", "Of a watch: the revision to resume after.")}};
inline constexpr RequestShape kWatchHeaders{
    "", {text("Last-Event-ID", "Of a watch: the revision to resume after.")}};
inline constexpr wire::Choices kSourceNames{"framework", "rule", "operator", "component"};
inline constexpr RequestShape kSourceQuery{
    "", {choice("source", kSourceNames, "Who makes the change, for the history.")}};
inline constexpr RequestShape kReplaceQuery{
    "",
    kSourceQuery,
    {text("to", "The phase to move to in the same write."), text("note", "For the history.")}};
inline constexpr RequestShape kReplaceHeaders{
    "",
    wire::kIdempotencyHeader,
    {text("If-Match", "The revision that GET gave as ETag.").required().example(R"("\"7\"")")}};
inline constexpr RequestShape kTypeHeaders{
    "",
    wire::kIdempotencyHeader,
    {choice("X-Pawl-Definition", {"data", "code"}, "Whether a program declares the type.")}};

// Headers of answers.
inline constexpr AnswerShape kRevisionHeader{
    "", {text("ETag", "The revision of the instance.").example(R"("\"7\"")")}};
inline constexpr AnswerShape kPageHeaders{
    "",
    {text("X-Pawl-Cursor", "For the next page; absent: there is none.").optional(),
     integer("X-Pawl-Skipped", "Instances that cannot be read and are left out.").optional()}};

// Bodies.
inline constexpr RequestShape kTransition{
    "TransitionRequest",
    {text("phase", "The phase to move to.").required().example(R"("flying")"),
     text("note", "For the history.").example(R"("cleared by tower")")}};
inline constexpr RequestShape kComplete{
    "CompleteRequest",
    {text("target", "The terminal phase; none: the type's own.").example(R"("completed")"),
     text("phase", "The same, when there is no target.")}};
inline constexpr RequestShape kFail{
    "FailInstanceRequest", {text("reason", "Why.").required().example(R"("lost contact")")}};
inline constexpr RequestShape kRunRule{
    "RunRuleRequest",
    {text("entity_id", "The instance.").example(R"("m1")"),
     any("message", "What $message stands for.").example(R"({"level":3})")}};
inline constexpr RequestShape kAct{
    "ActionRequest",
    {text("entity_id", "The instance.").example(R"("m1")"),
     object("action", "The action of a rule.", document::kAction)
         .required()
         .example(R"({"type":"lifecycle_transition","phase":"landed"})"),
     any("message", "What $message stands for.")}};
inline constexpr RequestShape kSubstitute{
    "SubstituteRequest",
    {text("entity_id", "The instance whose values are meant.").example(R"("m1")"),
     text("text", "A text with variables.").required().example(R"("phase is $entity.phase")"),
     any("message"), any("caller"), any("schedule"), any("state")}};

// Answers. A state has the fields of its type.
inline constexpr wire::Type kState =
    wire::map_of(Kind::any).with(R"({"id":"m1","phase":"flying"})");
inline constexpr AnswerShape kTypeRow{
    "WorkflowSummary",
    {text("workflow").example(R"("mission")"), text("kv_bucket"), texts("phases"),
     texts("terminal_phases"), texts("operator_writable_fields"),
     map("transitions", "The phases that follow each phase.", Kind::any)
         .example(R"({"planned":["flying"]})"),
     map("counts_by_phase", "The number of instances in each phase.", Kind::integer),
     text("counts_error", "Why not all are counted.").optional()}};
inline constexpr AnswerShape kEvent{
    "TransitionEvent",
    {text("from"), text("to").example(R"("flying")"), time("at"), choice("triggered", kSourceNames),
     text("note").optional(), text("caller").optional(), integer("revision")}};
inline constexpr AnswerShape kPatched{"PatchedState", {flag("ok")}};
inline constexpr AnswerShape kMoved{"MovedInstance",
                                    {flag("ok"), text("phase").example(R"("flying")")}};
inline constexpr AnswerShape kWritten{
    "WrittenInstance",
    {flag("ok"), text("phase").optional().example(R"("flying")"), text("result").optional(),
     text("warning").optional(), integer("revision")}};
inline constexpr AnswerShape kListed{
    "LifecycleInstance",
    {text("id").example(R"("m1")"), text("phase").example(R"("flying")"), integer("revision"),
     time("created"), time("updated"), variables("state", "Its fields.")}};
inline constexpr AnswerShape kInstances{
    "LifecycleInstances",
    {list("instances", "", kListed), count("skipped"),
     text("cursor", "For the next page; empty: there is none.")}};
inline constexpr AnswerShape kLinked{
    "LinkedInstance",
    {text("workflow").example(R"("mission")"), text("id").example(R"("m1")"),
     text("phase").example(R"("flying")"), flag("terminal"), integer("revision"),
     variables("state", "Its fields.").optional()}};
inline constexpr AnswerShape kText{"SubstitutedText", {text("text")}};

inline constexpr Operation kIndex{.id = "listWorkflows",
                                  .replies = {{200, "The types.", wire::list_of(kTypeRow)}}};
inline constexpr Operation kList{
    .id = "listWorkflowInstances",
    .path = &kTypePath,
    .query = &kWatchQuery,
    .headers = &kWatchHeaders,
    .replies = {{200, "Their states.", wire::list_of(Kind::any), wire::kJson, &kPageHeaders},
                {200, "", Kind::octets, wire::kEventStream},
                {101, "A WebSocket."}},
    .errors = {410}};
inline constexpr Operation kGet{
    .id = "getWorkflowInstance",
    .path = &kInstancePath,
    .replies = {{200, "Its state.", kState, wire::kJson, &kRevisionHeader}}};
inline constexpr Operation kHistory{
    .id = "getWorkflowHistory",
    .path = &kInstancePath,
    .replies = {{200, "Its phase changes, in order.", wire::list_of(kEvent)}}};
inline constexpr Operation kChildren{
    .id = "listWorkflowChildren",
    .path = &kInstancePath,
    .replies = {{200, "Their states.", wire::list_of(Kind::any), wire::kJson, &kPageHeaders}}};
inline constexpr Operation kPatch{
    .id = "patchWorkflowState",
    .path = &kInstancePath,
    .headers = &wire::kIdempotencyHeader,
    .body = {wire::map_of(Kind::any).with(R"({"note":"checked"})")},
    .replies = {{200, "The fields are set.", kPatched, wire::kJson, &kRevisionHeader}},
    .errors = {409, 422}};
inline constexpr Operation kTransitionOp{
    .id = "transitionWorkflow",
    .path = &kInstancePath,
    .headers = &wire::kIdempotencyHeader,
    .body = {kTransition},
    .replies = {{200, "The new phase.", kMoved, wire::kJson, &kRevisionHeader}},
    .errors = {409, 422}};
inline constexpr wire::Type kTypeDocument = document::kTypeExample;
inline constexpr wire::Type kTypeDocuments = wire::list_of(document::kType);
inline constexpr Operation kListTypes{.id = "listLifecycleTypes",
                                      .replies = {{200, "The definitions.", kTypeDocuments}}};
inline constexpr Operation kGetType{.id = "getLifecycleType",
                                    .path = &kTypePath,
                                    .replies = {{200, "The definition.", kTypeDocument}}};
inline constexpr Operation kPutType{.id = "putLifecycleType",
                                    .path = &kTypePath,
                                    .headers = &kTypeHeaders,
                                    .body = {kTypeDocument},
                                    .replies = {{201, "The stored definition.", kTypeDocument},
                                                {200, "It was stored already.", kTypeDocument}},
                                    .errors = {409, 422}};
inline constexpr Operation kListInstances{.id = "listLifecycleInstances",
                                          .path = &kTypePath,
                                          .query = &kListQuery,
                                          .replies = {{200, "A page.", kInstances}}};
constexpr Operation writing(std::string_view id, const wire::AnyShape* query,
                            const wire::AnyShape* headers, wire::Body body, int status = 200) {
  return {.id = id,
          .path = &kInstancePath,
          .query = query,
          .headers = headers,
          .body = body,
          .replies = {{status, "The new revision.", kWritten, wire::kJson, &kRevisionHeader}},
          .errors = {409, 412, 422}};
}
inline constexpr wire::Body kFields{wire::map_of(Kind::any).with(R"({"note":"first flight"})")};
inline constexpr Operation kCreate =
    writing("createLifecycleInstance", nullptr, &wire::kIdempotencyHeader, kFields, 201);
inline constexpr Operation kReplace =
    writing("replaceLifecycleInstance", &kReplaceQuery, &kReplaceHeaders, kFields);
inline constexpr Operation kRemove =
    writing("deleteLifecycleInstance", &kSourceQuery, &wire::kIdempotencyHeader, {});
inline constexpr Operation kCompleteOp =
    writing("completeLifecycleInstance", nullptr, &wire::kIdempotencyHeader,
            wire::optional_body(kComplete));
inline constexpr Operation kFailOp =
    writing("failLifecycleInstance", nullptr, &wire::kIdempotencyHeader, {kFail});
inline constexpr Operation kTransitionAs{
    .id = "transitionLifecycleInstance",
    .path = &kInstancePath,
    .query = &kSourceQuery,
    .headers = &wire::kIdempotencyHeader,
    .body = {kTransition},
    .replies = {{200, "The new phase.", kMoved, wire::kJson, &kRevisionHeader}},
    .errors = {409, 422}};
inline constexpr Operation kLookup{.id = "lookupLifecycleInstance",
                                   .path = &kIdPath,
                                   .replies = {{200, "The instance.", kLinked}},
                                   .errors = {409}};
inline constexpr Operation kAncestors{
    .id = "listLifecycleAncestors",
    .path = &kIdPath,
    .replies = {{200, "Parent first, root last.", wire::list_of(kLinked)}},
    .errors = {409}};
inline constexpr Operation kRoots{
    .id = "listLifecycleRoots",
    .replies = {{200, "The instances.", wire::list_of(kLinked), wire::kJson, &kPageHeaders}}};
inline constexpr Operation kChildrenOf{
    .id = "listLifecycleChildren",
    .path = &kIdPath,
    .replies = {{200, "The instances.", wire::list_of(kLinked), wire::kJson, &kPageHeaders}}};
// A rule that was stored, with how often it has fired.
inline constexpr RequestShape kShownRule{
    "StoredLifecycleRule",
    document::kRule,
    {object("status", "How often it has fired.", document::kRuleStatus).optional()}};
inline constexpr wire::Type kRuleDocument = document::kRuleExample;
inline constexpr Operation kListRules{.id = "listLifecycleRules",
                                      .replies = {{200, "The rules.", wire::list_of(kShownRule)}}};
inline constexpr Operation kGetRule{
    .id = "getLifecycleRule", .path = &kRulePath, .replies = {{200, "The rule.", kShownRule}}};
constexpr Operation ruling(std::string_view id, wire::Body body, bool created = false) {
  return {.id = id,
          .path = &kRulePath,
          .headers = &wire::kIdempotencyHeader,
          .body = body,
          .replies = {{200, "What came of it.", kWritten, wire::kJson, &kRevisionHeader},
                      created ? wire::Reply{201, "The rule is new.", kWritten, wire::kJson,
                                            &kRevisionHeader}
                              : wire::Reply{}},
          .errors = {409, 422}};
}
inline constexpr Operation kPutRule = ruling("putLifecycleRule", {kRuleDocument}, true);
inline constexpr Operation kRemoveRule = ruling("deleteLifecycleRule", {});
inline constexpr Operation kRunRuleOp = ruling("runLifecycleRule", wire::optional_body(kRunRule));
inline constexpr Operation kAction{
    .id = "runLifecycleAction",
    .headers = &wire::kIdempotencyHeader,
    .body = {kAct},
    .replies = {{200, "What came of it.", kWritten, wire::kJson, &kRevisionHeader}},
    .errors = {404, 409, 422}};
inline constexpr Operation kSubstituteOp{.id = "substituteLifecycleText",
                                         .body = {kSubstitute},
                                         .replies = {{200, "The text.", kText}},
                                         .errors = {404, 409, 422}};

}  // namespace pawl::lifecycle::http

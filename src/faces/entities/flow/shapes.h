#pragma once
// The document of an import of workflows: the members that each of its objects may have. The same
// rows read an import and describe it in the OpenAPI document. Members that are not listed are
// ignored, as in the original.

#include "wire/member.h"

namespace pawl::entities::document {

using wire::DocumentShape;
using wire::row::choice;
using wire::row::flag;
using wire::row::integer;
using wire::row::list;
using wire::row::map;
using wire::row::object;
using wire::row::text;
using wire::row::variables;

inline constexpr std::string_view kNotes = "Kept with the definition for the client's own use.";

inline constexpr DocumentShape kConfig{
    "EntityProcessorConfig",
    {flag("attachEntity", "The member gets the entity's data."),
     text("calculationNodesTags", "Tags that a member must have, with commas."),
     integer("responseTimeoutMs", "How long to wait for the answer.").range(0, std::nullopt),
     text("retryPolicy", "FIXED or NONE."), text("context", "Passed on to the member."),
     flag("startNewTxOnDispatch"), flag("durable", "Sent again after a restart of the server."),
     flag("validateResult", "What the member returns must fit the model.")}};

inline constexpr DocumentShape kProcessor{
    "EntityProcessor",
    {text("type", "EXTERNAL; none: EXTERNAL."), text("name").required(),
     text("executionMode",
          "SYNC, ASYNC_SAME_TX, ASYNC_NEW_TX or COMMIT_BEFORE_DISPATCH; none: SYNC."),
     flag("startNewTxOnDispatch"), object("config", "", kConfig),
     variables("annotations", kNotes)}};

inline constexpr DocumentShape kScheduleFunction{
    "EntityScheduleFunction",
    {text("name").required(), text("resultKind", "Schedule.").required(),
     text("calculationNodesTags", "Tags that a member must have, with commas.").required(),
     flag("attachEntity", "The member gets the entity's data.").by_default(true), text("context"),
     integer("responseTimeoutMs").range(0, std::nullopt), text("retryPolicy")}};

inline constexpr DocumentShape kSchedule{
    "EntitySchedule",
    {integer("delayMs", "How long after the state was entered.").range(1, std::nullopt),
     integer("timeoutMs", "With delayMs: how late it may still fire.").range(0, std::nullopt),
     object("function", "Instead of delayMs: a member says when.", kScheduleFunction)}};

inline constexpr wire::Member kCriterion =
    wire::row::document("criterion", "When it is taken.", "EntityCondition");

inline constexpr DocumentShape kTransition{
    "EntityTransition",
    {text("name").required(), text("next", "The state that it leads to.").required(),
     flag("manual", "Not taken by itself."), flag("disabled"), kCriterion,
     object("schedule", "When it is taken by itself.", kSchedule),
     list("processors", "", kProcessor), variables("annotations", kNotes),
     variables("criterionAnnotations", kNotes)}};

inline constexpr DocumentShape kState{
    "EntityState", {list("transitions", "", kTransition), variables("annotations", kNotes)}};

inline constexpr DocumentShape kWorkflow{
    "EntityWorkflow",
    {text("version"), text("name").required(), text("desc"), text("initialState").required(),
     flag("active").by_default(true), kCriterion,
     map("states", "The transitions of each state.", kState).with_null_elements().required(),
     variables("annotations", kNotes), variables("criterionAnnotations", kNotes)}};

inline constexpr DocumentShape kImport{
    "EntityWorkflowImport",
    {text("importMode", "MERGE, REPLACE or ACTIVATE; none: MERGE."),
     list("workflows", "", kWorkflow)}};

inline constexpr wire::Type kExample = wire::Type(kImport).with(R"({
  "importMode": "REPLACE", "workflows": [
    {"version": "1", "name": "order", "initialState": "NEW", "active": true, "states": {
       "NEW": {"transitions": [{"name": "approve", "next": "APPROVED", "manual": true}]},
       "APPROVED": {}}}]})");

}  // namespace pawl::entities::document

#pragma once
// The document of a definition: the members that each of its objects may have. The same rows read
// an upload and describe it in the OpenAPI document, so a new member is added here alone.

#include "wire/member.h"

namespace pawl::processes::document {

using wire::DocumentShape;
using wire::row::any;
using wire::row::choice;
using wire::row::flag;
using wire::row::integer;
using wire::row::list;
using wire::row::map;
using wire::row::number;
using wire::row::object;
using wire::row::text;
using wire::row::texts;
using wire::row::variables;

inline constexpr std::string_view kDuration = "An ISO 8601 duration.";

inline constexpr DocumentShape kLimit{
    "ProcessLimit",
    {text("key", "An expression; jobs with the same value share the limit."),
     text("name", "Definitions that name the same limit share it."),
     integer("concurrent", "Jobs that run together.").range(1, std::nullopt),
     text("rate", "Jobs by time, 10/s, 10/m or 10/h."), integer("burst").range(1, std::nullopt)}};

inline constexpr DocumentShape kKeyPolicy{
    "ProcessBusinessKey",
    {choice("unique", {"running", "always"}, "Among which instances a key is unique.").required(),
     choice("conflict", {"refuse", "return"}, "What a second start gets.")}};

inline constexpr DocumentShape kRetention{
    "Retention",
    {text("completed", "How long completed instances stay, as an ISO 8601 duration.")
         .example(R"("P30D")"),
     text("failed", "How long failed instances stay."),
     text("cancelled", "How long cancelled instances stay.")}};

inline constexpr DocumentShape kBackoff{
    "ProcessBackoff",
    {text("initial", kDuration).required(),
     number("multiplier", "Of the waiting time, from one retry to the next.").range(1, 1000),
     text("max", kDuration)}};

inline constexpr DocumentShape kBoundary{"ProcessTimer",
                                         {text("type", "TIMER"), text("duration", kDuration),
                                          flag("interrupting", "The timer ends the step."),
                                          text("targetStepId", "The step that comes next.")}};

// `when` has texts and nulls: a cell that is null matches always.
inline constexpr DocumentShape kRule{
    "ProcessRule",
    {map("when", "Conditions by column.", wire::Kind::text).with_null_elements(),
     variables("outputs", "The variables to set: values, or expressions in ${}.")}};
inline constexpr DocumentShape kTable{"ProcessDecisionTable", {list("rules", "", kRule)}};

inline constexpr DocumentShape kCall{
    "ProcessCall",
    {text("workflowId", "The id of the definition to start.").required(),
     integer("version", "Absent: the active version.").range(0, INT32_MAX),
     flag("wait", "Wait for the end of the child.").by_default(true),
     variables("variables", "Of the child; absent: all of this instance."),
     variables("outputs", "What to take over from the child."),
     text("businessKey", "An expression.")}};

inline constexpr DocumentShape kCompensation{
    "ProcessCompensation",
    {text("jobType", "The type that workers poll.").required(), variables("variables"),
     integer("retryCount")}};

// All step types share one list: a member that the type does not use is allowed and kept.
inline constexpr DocumentShape kStep{
    "ProcessStep",
    {text("id").required(),
     text("name").required(),
     choice("type", {"SERVICE_TASK", "USER_TASK", "DECISION", "DECISION_TABLE", "TRANSFORMATION",
                     "WAIT", "PARALLEL_GATEWAY", "JOIN_GATEWAY", "END", "CALL"})
         .required(),
     text("description"),
     text("nextStep", "The id of the next step."),
     texts("parallelNextSteps", "Of a PARALLEL_GATEWAY: the first step of each branch."),
     text("joinStep", "Of a PARALLEL_GATEWAY: its JOIN_GATEWAY."),
     map("conditionalNextSteps", "Of a DECISION: the next step by expression.", wire::Kind::text),
     variables("transformations", "Of a TRANSFORMATION: the variables to set."),
     text("jobType", "Of a SERVICE_TASK: the type that workers poll."),
     text("delegateClass"),
     integer("retryCount", "How often a failed job is offered again."),
     object("retryBackoff", "How long to wait before a retry.", kBackoff),
     list("boundaryEvents", "Timers of the step.", kBoundary),
     object("limit", "How many jobs may run: together and by time.", kLimit),
     text("hitPolicy", "Of a DECISION_TABLE."),
     object("decisionTable", "Of a DECISION_TABLE.", kTable),
     flag("autoStartNextWorkflow", "Of an END: start the definition's nextWorkflowId."),
     variables("outputsSchema", "A JSON Schema for the variables of a completion."),
     text("attemptTimeout", "An ISO 8601 duration for one attempt."),
     text("signal", "Of a WAIT: the name of the signal."),
     text("correlationKey", "Of a WAIT: an expression."),
     object("call", "Of a CALL.", kCall),
     object("compensation", "The undo of the step.", kCompensation)}};

inline constexpr DocumentShape kDefinition{
    "ProcessDefinition",
    {text("id", "Letters, digits and : . _ -").required(),
     integer("version", "Not read: the server numbers versions."), text("name").required(),
     text("description"),
     flag("autoStartNextWorkflow", "Start nextWorkflowId when an instance has ended."),
     text("nextWorkflowId"), list("steps", "", kStep).required(),
     variables("metadata", "Anything."),
     object("limit", "How many jobs may run: together and by time.", kLimit),
     text("priority", "An expression for the priority of jobs."),
     text("fairnessKey", "An expression: jobs of different keys are handed out in turn."),
     variables("inputSchema", "A JSON Schema for the first variables."),
     object("businessKey", "What a second instance with the same business key does.", kKeyPolicy),
     map("queries", "Expressions by name.", wire::Kind::text),
     object("retention", "How long finished instances stay.", kRetention),
     text("onFailure", "compensate: undo the steps that are done.")}};

inline constexpr wire::Type kExample = wire::Type(kDefinition).with(R"({
  "id": "loan", "name": "Loan", "steps": [
    {"id": "score", "name": "Score", "type": "SERVICE_TASK", "jobType": "score-loan",
     "retryCount": 3, "nextStep": "end"},
    {"id": "end", "name": "End", "type": "END"}]})");

}  // namespace pawl::processes::document

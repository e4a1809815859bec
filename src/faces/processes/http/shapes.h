#pragma once
// Shapes of bodies, queries and answers that several routes of processes share.

#include "wire/operation.h"

namespace pawl::processes {

using namespace wire::row;  // tables name their rows by type
using wire::AnswerShape;
using wire::Operation;
using wire::RequestShape;

inline constexpr wire::Choices kInstanceStatuses{"ACTIVE", "WAITING", "COMPLETED", "FAILED",
                                                 "CANCELLED"};

inline constexpr AnswerShape kError{
    "ProcessError",
    {text("error", "A word for programs.").example(R"("not-found")"),
     text("reason", "What happened and what to do, for people.")
         .example(R"("instance \"01J\" not found")")}};

// Path parameters.
inline constexpr RequestShape kInstancePath{"", {text("id", "The id of the instance.")}};
inline constexpr RequestShape kDefinitionPath{"", {text("id", "The id of the definition.")}};
inline constexpr RequestShape kJobPath{"", {text("id", "The id of the job.")}};

// Queries.
inline constexpr RequestShape kPageQuery{
    "",
    {integer("page", "The number of the page, from 0 on.").range(0, std::nullopt).by_default(0),
     integer("pageSize", "The number of items of a page; more than the limit is the limit.")
         .by_default(20)}};

inline constexpr AnswerShape kInstance{
    "Instance",
    {text("id").example(R"("01JD0000000000000000000000")"),
     text("definitionId").example(R"("loan")"), integer("definitionVersion").range(1, std::nullopt),
     choice("status", kInstanceStatuses),
     texts("currentStepIds", "The steps at which the instance is.").example(R"(["review"])"),
     variables("variables").example(R"({"amount":100})"), time("startedAt"),
     time("completedAt", "When the instance ended.").optional(),
     text("failureReason", "Why the instance failed or was cancelled.").optional(),
     text("businessKey").optional(),
     text("nextInstanceId", "The instance that was chained to this one.").optional(),
     text("previousInstanceId", "The instance that this one continues or restarts.").optional(),
     text("parentInstanceId", "The instance whose step started this one.").optional(),
     flag("compensating", "The instance undoes its steps.").optional(), flag("paused").optional(),
     integer("priority").optional(), text("fairnessKey").optional(),
     flag("existing", "The business key had this instance already.").optional()}};

// Bodies.
inline constexpr RequestShape kStart{
    "StartRequest",
    {text("definitionId", "The definition to run.").required().example(R"("loan")"),
     integer("definitionVersion", "Its version; 0 or none: the active one.")
         .range(std::nullopt, INT32_MAX),
     variables("variables", "The first variables.").example(R"({"amount":100})"),
     text("businessKey", "Your own key of the instance.").example(R"("order-4711")"),
     integer("priority", "Jobs of a higher priority are handed out first."),
     text("fairnessKey", "Jobs of different keys are handed out in turn.")}};

inline constexpr RequestShape kReason{
    "ReasonRequest", {text("reason", "Why, for the history.").example(R"("asked by support")")}};
inline constexpr RequestShape kResult{
    "ResultRequest",
    {text("workerId", "The worker or person that reports.").example(R"("worker-1")"),
     variables("variables", "Merged into the variables of the instance.")
         .example(R"({"approved":true})")}};
inline constexpr RequestShape kFail{
    "FailRequest",
    {text("workerId", "The worker that reports.").example(R"("worker-1")"),
     text("errorMessage", "What went wrong.").example(R"("card declined")"),
     flag("retryable", "Offer the job again if retries are left.").by_default(false)}};

inline constexpr wire::Choices kExecutionStatuses{"RUNNING", "COMPLETED", "FAILED", "SKIPPED"};

}  // namespace pawl::processes

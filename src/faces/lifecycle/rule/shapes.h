#pragma once
// The document of a rule: the members that its objects may have. The same rows read it and describe
// it in the OpenAPI document.

#include "wire/member.h"

namespace pawl::lifecycle::document {

// The members of an action, whether or not its type uses them.
inline constexpr wire::DocumentShape kAction{
    "LifecycleAction",
    {wire::row::choice("type", {"lifecycle_transition", "lifecycle_complete", "lifecycle_fail"})
         .required(),
     wire::row::text("workflow"), wire::row::text("phase", "The phase to move to."),
     wire::row::any("set", "Fields to set in the same write."),
     wire::row::text("reason", "Of lifecycle_fail."),
     wire::row::any("when", "Fields and the values that they must have."), wire::row::any("id"),
     wire::row::integer("max_iterations", "0: no limit.").range(0, std::nullopt)}};

inline constexpr wire::RequestShape kOn{
    "LifecycleRuleOn",
    {wire::row::text("phase", "Entered by an instance."), wire::row::text("cron"),
     wire::row::text("every", "An ISO 8601 duration.")}};

inline constexpr wire::AnswerShape kRuleStatus{
    "LifecycleRuleStatus",
    {wire::row::count("fired").optional(), wire::row::count("failed").optional(),
     wire::row::time("last_fired").optional(), wire::row::time("next").optional(),
     wire::row::text("last_error").optional()}};

inline constexpr wire::RequestShape kRule{
    "LifecycleRule",
    {wire::row::text("workflow").required(),
     wire::row::object("on", "One of phase, cron and every.", kOn).required(),
     wire::row::any("when", "Fields and the values that they must have, or a list of conditions."),
     wire::row::list("then", "", kAction).required().range(1, std::nullopt),
     wire::row::count("max_iterations", "0: no limit."), wire::row::flag("enabled"),
     wire::row::text("name"), wire::row::any("description")}};

inline constexpr wire::Type kRuleExample = wire::Type(kRule).with(R"({
  "workflow": "mission", "on": {"phase": "flying"},
  "then": [{"type": "lifecycle_transition", "phase": "landed"}]})");

}  // namespace pawl::lifecycle::document

#pragma once
// Shared by the operator routes: filters from queries and bodies, and tokens as JSON.

#include "faces/processes/http/shapes.h"
#include "faces/processes/service.h"
#include "wire/message.h"

namespace pawl::processes {

// Which instances are meant. The rows are parameters of a query and members of a body.
inline constexpr RequestShape kFilter{
    "InstanceFilter",
    {text("definitionId"), text("businessKey"),
     text("step", "The id of a step at which the instance is."), text("parentInstanceId"),
     flag("paused"), choice("status", kInstanceStatuses).example(R"("FAILED")"),
     time("startedFrom"), time("startedTo"), time("updatedFrom"), time("updatedTo")}};
inline constexpr RequestShape kFilterQuery{
    "",
    kFilter,
    {texts("variable", "path=value, a JSON value or plain text; may be repeated.")
         .example(R"(["amount=100"])")}};
inline constexpr RequestShape kFilterBody{
    "InstanceFilterBody",
    kFilter,
    {variables("variables", "Values that variables have, by path.").example(R"({"amount":100})")}};

Result<InstanceFilter> filter_of_query(const wire::Request& request);
Result<InstanceFilter> filter_of_body(const json::Value& filter);

json::Value tokens_value(const Instance& instance, const Definition& definition);

}  // namespace pawl::processes

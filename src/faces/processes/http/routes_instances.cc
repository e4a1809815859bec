// Routes of instances: start, read, cancel, user tasks and signals.

#include "faces/processes/definition/steps.h"
#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

constexpr AnswerShape kInstancePage{
    "InstancePage",
    {list("items", "Null when there are none.", kInstance).or_null(), count("total")}};
constexpr RequestShape kInstancesQuery{
    "",
    kPageQuery,
    {text("definitionId"), text("businessKey"), choice("status", kInstanceStatuses)}};
constexpr AnswerShape kExecution{
    "StepExecution",
    {text("ID"), text("InstanceID"), text("StepID"), text("StepType").example(R"("SERVICE_TASK")"),
     count("AttemptNumber"), choice("Status", kExecutionStatuses), time("StartedAt"),
     time("EndedAt").or_null(), any("InputSnapshot").example("null"),
     any("OutputSnapshot").example("null"), text("FailureReason").or_null()}};
constexpr AnswerShape kHistory{"InstanceHistory", {list("items", "In order.", kExecution)}};
constexpr RequestShape kStepPath{
    "", {text("id", "The id of the instance."), text("step", "The id of the step.")}};
constexpr RequestShape kSignalQuery{
    "", {flag("keep", "Keep a signal that comes before its WAIT.").by_default(false)}};

constexpr AnswerShape kKept{"KeptForStep", {flag("kept")}};

constexpr Operation kStartInstance{
    .id = "startInstance",
    .headers = &wire::kIdempotencyHeader,
    .body = {kStart},
    .replies = {{201, "The instance after its first steps.", kInstance},
                {200, "The instance that had the business key already.", kInstance}},
    .errors = {404, 409, 422}};
constexpr Operation kListInstances{.id = "listInstances",
                                   .query = &kInstancesQuery,
                                   .replies = {{200, "A page of instances.", kInstancePage}}};
constexpr Operation kGetInstance{
    .id = "getInstance", .path = &kInstancePath, .replies = {{200, "The instance.", kInstance}}};
constexpr Operation kGetHistory{.id = "getInstanceHistory",
                                .path = &kInstancePath,
                                .replies = {{200, "Its step executions.", kHistory}}};
constexpr Operation kCancel{.id = "cancelInstance",
                            .path = &kInstancePath,
                            .headers = &wire::kIdempotencyHeader,
                            .body = wire::optional_body(kReason),
                            .replies = {{200, "The cancelled instance.", kInstance}},
                            .errors = {409, 422}};
constexpr Operation kCompleteTask{.id = "completeUserTask",
                                  .path = &kStepPath,
                                  .headers = &wire::kIdempotencyHeader,
                                  .body = wire::optional_body(kResult),
                                  .replies = {{204, "The task is completed."}},
                                  .errors = {409, 422}};
constexpr Operation kRetryStep{.id = "retryStep",
                               .path = &kStepPath,
                               .headers = &wire::kIdempotencyHeader,
                               .body = wire::optional_body(kResult),
                               .replies = {{200, "The instance after the retry.", kInstance}},
                               .errors = {409, 422}};
constexpr Operation kSignal{
    .id = "signalWait",
    .path = &kStepPath,
    .query = &kSignalQuery,
    .headers = &wire::kIdempotencyHeader,
    .body = wire::optional_body(wire::map_of(wire::Kind::any).with(R"({"paid":true})")),
    .replies = {{204, "The instance goes on."}, {202, "The signal is kept.", kKept}},
    .errors = {409, 422}};

void start(Service& service, wire::Request request, wire::Respond respond) {
  auto body = wire::BodyReader::of(request, kBody);
  if (!body) return respond(refusal(body.error()));
  auto command = start_command(*body);
  if (!command) return respond(refusal(command.error()));
  service.start(submitter_of(request), std::move(*command),
                [respond = std::move(respond)](Result<Bytes> answer) mutable {
                  if (!answer) return respond(refusal(answer.error()));
                  int status = start_status(*answer);
                  respond(ok(status, std::move(*answer)));
                });
}

Result<std::string> list(Service& service, const wire::Request& request) {
  TRY(PageRequest page, page_of(request));
  InstanceFilter filter;
  filter.definition_id = request.query_param(kInstancesQuery["definitionId"]).value_or("");
  filter.business_key = request.query_param(kInstancesQuery["businessKey"]).value_or("");
  if (std::string status = request.query_param(kInstancesQuery["status"]).value_or("");
      !status.empty()) {
    TRY(filter.status, status_of_filter(status));
  }
  TRY(InstancePage found, service.instances(request.caller.tenant, filter, page.page, page.size));
  std::string out = "{\"items\":";
  out += found.items.empty() ? "null" : "[";
  for (size_t i = 0; i < found.items.size(); ++i) {
    TRY(std::string text, service.instance_text(request.caller.tenant, *found.items[i]));
    if (i) out += ',';
    out += text;
  }
  if (!found.items.empty()) out += ']';
  return out += ",\"total\":" + std::to_string(found.total) + "}";
}

Result<std::string> show(Service& service, const wire::Request& request) {
  TRY(auto instance, service.instance(request.caller.tenant, request.params[0]));
  return service.instance_text(request.caller.tenant, *instance);
}

Result<std::string> history(Service& service, const wire::Request& request) {
  const std::string& id = request.params[0];
  TRY(std::vector<ExecutionRow> rows, service.history(request.caller.tenant, id));
  std::string out = "{\"items\":[";
  for (size_t i = 0; i < rows.size(); ++i) {
    const ExecutionRow& r = rows[i];
    if (i) out += ',';
    out +=
        "{\"ID\":\"" + ordinal_id(id, r.ordinal) + "\",\"InstanceID\":\"" + id + "\",\"StepID\":";
    json::append_string(out, r.step);
    out += ",\"StepType\":\"" + std::string(type_of(r.kind).name) +
           "\",\"AttemptNumber\":" + std::to_string(r.attempt) + ",\"Status\":\"" +
           std::string(execution_name(r.status)) + "\"";
    append_time(out += ",\"StartedAt\":", r.started);
    out += ",\"EndedAt\":";
    if (r.ended)
      append_time(out, r.ended);
    else
      out += "null";
    out += ",\"InputSnapshot\":null,\"OutputSnapshot\":null,\"FailureReason\":";
    if (r.reason.empty())
      out += "null";
    else
      json::append_string(out, r.reason);
    out += '}';
  }
  return out += "]}";
}

void cancel(Service& service, wire::Request request, wire::Respond respond) {
  // The contract refuses no body here: one that cannot be read gives no reason.
  std::string reason;
  if (auto body = wire::BodyReader::of(request, kOptionalBody))
    reason = body->value().string_or(kReason["reason"]);
  service.cancel(submitter_of(request), {request.params[0], std::move(reason)},
                 reply_with(std::move(respond), 200));
}

Result<ResultCommand> task_command(const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kOptionalBody));
  ResultCommand c{.id = request.params[0], .step = request.params[1]};
  TRY(c.worker, body.text(kResult["workerId"]));
  TRY(c.variables, take_variables(body));
  return c;
}

void complete_task(Service& service, wire::Request request, wire::Respond respond) {
  auto command = task_command(request);
  if (!command) return respond(refusal(command.error()));
  service.complete_task(submitter_of(request), std::move(*command),
                        reply_with(std::move(respond), 204));
}

void signal(Service& service, wire::Request request, wire::Respond respond) {
  auto body = wire::BodyReader::of(request, kOptionalBody);
  if (!body) return respond(refusal(body.error()));
  json::Value variables = std::move(*body).take();
  ResultCommand c{.id = request.params[0],
                  .step = request.params[1],
                  .variables = make_variables(std::move(variables.object())),
                  .keep = request.query_param(kSignalQuery["keep"]).value_or("") == "true"};
  service.signal(submitter_of(request), std::move(c),
                 [respond = std::move(respond)](Result<Bytes> answer) mutable {
                   if (!answer) return respond(refusal(answer.error()));
                   // Only a signal that was kept has a body.
                   respond(answer->empty() ? no_content() : ok(202, std::move(*answer)));
                 });
}

void retry_step(Service& service, wire::Request request, wire::Respond respond) {
  auto command = task_command(request);
  if (!command) return respond(refusal(command.error()));
  service.retry_step(submitter_of(request), command->id, command->step, command->variables,
                     reply_with(std::move(respond), 200));
}

}  // namespace

std::vector<wire::Route> instance_routes(Service& s) {
  using wire::Request, wire::Respond, wire::slow;
  return {
      {"POST", "/v1/instances",
       [&s](Request r, Respond a) { start(s, std::move(r), std::move(a)); },
       "Starts an instance and runs it until it waits or ends.", &kStartInstance},
      slow({"GET", "/v1/instances",
            [&s](Request r, Respond a) { respond_with(a, [&] { return list(s, r); }); },
            "Lists instances, newest first.", &kListInstances}),
      {"GET", "/v1/instances/{id}",
       [&s](Request r, Respond a) { respond_with(a, [&] { return show(s, r); }); },
       "Shows an instance.", &kGetInstance},
      slow({"GET", "/v1/instances/{id}/history",
            [&s](Request r, Respond a) { respond_with(a, [&] { return history(s, r); }); },
            "Lists the step executions of an instance in order.", &kGetHistory}),
      {"POST", "/v1/instances/{id}/cancel",
       [&s](Request r, Respond a) { cancel(s, std::move(r), std::move(a)); },
       "Cancels an instance that is not finished.", &kCancel},
      {"POST", "/v1/instances/{id}/user-tasks/{step}/complete",
       [&s](Request r, Respond a) { complete_task(s, std::move(r), std::move(a)); },
       "Completes an open user task.", &kCompleteTask},
      {"POST", "/v1/instances/{id}/steps/{step}/retry",
       [&s](Request r, Respond a) { retry_step(s, std::move(r), std::move(a)); },
       "Merges variables and runs the step again at which the instance failed.", &kRetryStep},
      {"POST", "/v1/instances/{id}/signals/{step}",
       [&s](Request r, Respond a) { signal(s, std::move(r), std::move(a)); },
       "Signals a WAIT step; the body is merged into the variables. With keep=true a signal that "
       "comes before its WAIT is kept.",
       &kSignal},
  };
}

}  // namespace pawl::processes

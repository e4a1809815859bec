// Routes for operators: lists with filters, events with the variables they changed, the state after
// any event, pauses, dry runs and user tasks.

#include <map>

#include "faces/processes/definition/decision_table.h"
#include "faces/processes/definition/shapes.h"
#include "faces/processes/definition/steps.h"
#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/http/operators.h"
#include "faces/processes/limits.h"
#include "faces/processes/run/dry_run.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

constexpr RequestShape kListQuery{"",
                                  kFilterQuery,
                                  {text("cursor", "The cursor of the page before."),
                                   integer("limit", "How many, at most 1000; 0 or none: 50.")}};
constexpr AnswerShape kListed{"InstanceListed", kInstance, {time("updatedAt")}};
constexpr AnswerShape kListedPage{
    "InstanceList",
    {list("items", "The newest first.", kListed),
     text("cursor", "For the next page; absent: there is none.").optional()}};
constexpr AnswerShape kTimer{
    "ArmedTimer",
    {count("index"), flag("interrupting"), text("targetStepId"), time("dueAt").optional(),
     integer("remainingMs", "Of a suspended instance.").optional()}};
constexpr AnswerShape kToken{
    "Token",
    {text("stepId"), text("stepType"), choice("state", {"running", "held", "failed", "stuck"}),
     text("executionId").optional(), count("attempt").optional(), time("enteredAt").optional(),
     text("jobId").optional(), text("jobType").optional(), count("failedTries").optional(),
     time("attemptEndsAt").optional(), text("childInstanceId").optional(),
     list("timers", "", kTimer).optional()}};
constexpr AnswerShape kParked{"QuarantinedEffect", {text("effect"), text("kind"), time("since")}};
constexpr AnswerShape kDetail{
    "InstanceDetail",
    kListed,
    {list("tokens", "", kToken),
     list("quarantine", "Effects during which the server crashed.", kParked).optional()}};
constexpr AnswerShape kFact{
    "EventFact",
    {choice("kind", {"entered", "ended", "event"}), text("stepId").optional(),
     text("stepType").optional(), text("executionId").optional(), count("attempt").optional(),
     choice("status", kExecutionStatuses).optional(), text("text").optional(),
     list("rules", "The rules that a DECISION_TABLE chose, by index.", wire::Kind::integer)
         .optional()}};
constexpr AnswerShape kEvent{
    "InstanceEvent",
    {integer("event", "The number of the event."), time("at"), text("cause").example(R"("start")"),
     text("by", "Who caused it."),
     choice("status", kInstanceStatuses, "The status after the event."), text("reason").optional(),
     list("facts", "", kFact),
     map("variables", "The variables that changed: {from, to} by name.", wire::Kind::any)
         .optional()}};
constexpr AnswerShape kEvents{"InstanceEvents", {list("items", "The oldest first.", kEvent)}};
constexpr RequestShape kEventsQuery{
    "", {flag("variables", "Show the variables that each event changed.").by_default(true)}};
constexpr RequestShape kEventPath{
    "", {text("id", "The id of the instance."), integer("event", "The number of an event.")}};
constexpr RequestShape kTasksQuery{
    "",
    {text("definitionId"), text("businessKey"), text("step"),
     text("jobType", "The form of the task."), text("cursor", "The cursor of the page before."),
     integer("limit", "How many, at most 1000; 0 or none: 50.")}};
constexpr AnswerShape kTask{
    "UserTask",
    {text("instanceId"), text("stepId"), text("definitionId"), time("createdAt"), text("name"),
     text("jobType").optional(), text("businessKey").optional()}};
constexpr AnswerShape kTasks{
    "UserTasks", {list("items", "The oldest first.", kTask), text("cursor").optional()}};
constexpr AnswerShape kSummary{
    "DefinitionCounts",
    {text("definitionId").example(R"("loan")"),
     map("instances", "The number of instances by status.", wire::Kind::integer)
         .example(R"({"ACTIVE":2})"),
     integer("versions").optional(), integer("activeVersion").optional(), flag("paused").optional(),
     flag("retired").optional()}};
constexpr AnswerShape kSummaries{"DefinitionCountsList", {list("items", "", kSummary)}};
constexpr AnswerShape kJobType{
    "JobType",
    {text("jobType").example(R"("charge-card")"), count("offered"), count("leased"),
     count("waitingPolls"), flag("paused"), text("reason").optional()}};
constexpr AnswerShape kJobTypes{"JobTypes", {list("items", "", kJobType)}};
constexpr RequestShape kDryRun{
    "DryRunRequest",
    {text("definitionId", "A stored definition."),
     integer("definitionVersion", "Its version; 0 or none: the active one.")
         .range(std::nullopt, UINT32_MAX),
     object("definition", "Or: the definition itself.", document::kDefinition),
     variables("variables", "The first variables."),
     map("script", "The results of steps by id: {variables, error, retryable, timer}.",
         wire::Kind::any)}};
constexpr AnswerShape kDryRunStep{
    "DryRunStep",
    {text("stepId").optional(), text("stepType").optional(), count("attempt").optional(),
     choice("status", kExecutionStatuses).optional(), text("reason").optional(),
     text("event").optional()}};
constexpr AnswerShape kDryRunAnswer{
    "DryRun",
    {choice("status", kInstanceStatuses), text("failureReason").optional(), texts("currentStepIds"),
     variables("variables"), list("path", "", kDryRunStep)}};
constexpr AnswerShape kValid{"ValidDefinition",
                             {text("id"), flag("valid"), count("steps"), texts("warnings")}};
constexpr AnswerShape kPausedDefinition{"PausedDefinition", {text("definitionId"), flag("paused")}};
constexpr AnswerShape kPausedType{"PausedJobType", {text("jobType"), flag("paused")}};
constexpr RequestShape kTypePath{"", {text("type", "The job type.")}};

constexpr Operation kFindInstances{.id = "findInstances",
                                   .query = &kListQuery,
                                   .replies = {{200, "A page of instances.", kListedPage}}};
constexpr Operation kShowInstance{.id = "inspectInstance",
                                  .path = &kInstancePath,
                                  .replies = {{200, "The instance with its tokens.", kDetail}}};
constexpr Operation kListEvents{.id = "listInstanceEvents",
                                .path = &kInstancePath,
                                .query = &kEventsQuery,
                                .replies = {{200, "The events.", kEvents}}};
constexpr Operation kStateAt{.id = "getInstanceAtEvent",
                             .path = &kEventPath,
                             .replies = {{200, "The instance after the event.", kInstance}}};
constexpr Operation kListTasks{
    .id = "listUserTasks", .query = &kTasksQuery, .replies = {{200, "Open tasks.", kTasks}}};
constexpr Operation kCountDefinitions{.id = "countInstancesByDefinition",
                                      .replies = {{200, "The counts.", kSummaries}}};
constexpr Operation kListJobTypes{.id = "listJobTypes",
                                  .replies = {{200, "The job types.", kJobTypes}}};
constexpr Operation kRunDry{.id = "dryRun",
                            .body = {kDryRun},
                            .replies = {{200, "The walk.", kDryRunAnswer}},
                            .errors = {404, 409, 422}};
constexpr Operation kValidate{.id = "validateDefinition",
                              .body = {document::kExample},
                              .replies = {{200, "The definition is valid.", kValid}},
                              .errors = {422}};
constexpr Operation pausing(std::string_view id, const wire::AnyShape& path,
                            const wire::AnyShape& answer) {
  return {.id = id,
          .path = &path,
          .headers = &wire::kIdempotencyHeader,
          .body = wire::optional_body(kReason),
          .replies = {{200, "Whether it is paused now.", answer}},
          .errors = {409, 422}};
}
constexpr Operation kPauseDefinition =
    pausing("pauseDefinition", kDefinitionPath, kPausedDefinition);
constexpr Operation kResumeDefinition =
    pausing("resumeDefinition", kDefinitionPath, kPausedDefinition);
constexpr Operation kPauseType = pausing("pauseJobType", kTypePath, kPausedType);
constexpr Operation kResumeType = pausing("resumeJobType", kTypePath, kPausedType);

std::string tenant_of(const wire::Request& r) { return r.caller.tenant; }

size_t limit_of(const wire::Request& request) {
  std::string text = request.query_param(kListQuery["limit"]).value_or("");
  size_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n == 0 ? 50 : std::min(n, kMaxPage);
}

Result<std::string> list(Service& service, const wire::Request& request) {
  TRY(InstanceFilter filter, filter_of_query(request));
  TRY(Bytes cursor, unhex(request.query_param(kListQuery["cursor"]).value_or("")));
  TRY(Service::FoundInstances found,
      service.find(tenant_of(request), filter, cursor, limit_of(request)));
  std::string out = "{\"items\":[";
  for (size_t i = 0; i < found.items.size(); ++i) {
    TRY(std::string text, service.instance_text(tenant_of(request), *found.items[i]));
    text.pop_back();
    append_time(text += ",\"updatedAt\":", found.items[i]->updated);
    out += (i ? "," : "") + text + "}";
  }
  out += ']';
  if (!found.cursor.empty()) out += ",\"cursor\":\"" + hex(found.cursor) + "\"";
  return out += '}';
}

Result<std::string> show(Service& service, const wire::Request& request) {
  TRY(auto instance, service.instance(tenant_of(request), request.params[0]));
  TRY(auto definition,
      service.definition(tenant_of(request), instance->definition_id, instance->version));
  std::string out = instance_json(*instance, *definition);
  out.pop_back();
  append_time(out += ",\"updatedAt\":", instance->updated);
  json::Array parked;
  for (const Service::ParkedEffect& one : service.parked(tenant_of(request), instance->id))
    parked.push_back(json::object(
        {{"effect", one.effect_id}, {"kind", one.kind}, {"since", rfc3339(one.since, 6)}}));
  if (!parked.empty()) out += ",\"quarantine\":" + json::print(json::Value(std::move(parked)));
  return out += ",\"tokens\":" + json::print(tokens_value(*instance, *definition)) + "}";
}

// The rules that decision tables chose in an event, by the index of the fact that ended the table.
using ChosenRules = std::map<size_t, std::vector<size_t>>;

// No rule is recorded: what the notes say about the variables leads back to those from before the
// table, which decide again. `variables` are those after the event. `work` counts the expressions
// of the whole answer: once it is as much as one turn may do, no further rules are named.
ChosenRules chosen_rules(const Event& e, const Definition& definition, json::Object variables,
                         size_t& work) {
  ChosenRules out;
  const std::vector<Fact>& facts = e.note.facts;
  for (size_t i = facts.size(); i-- > 0;) {
    const Fact& f = facts[i];
    if (!f.undo.empty()) undo(variables, f.undo);
    if (f.kind != Fact::Kind::ended || f.step_kind != Kind::decision_table) continue;
    const uint32_t step = definition.find(f.step);
    if (step == kNoStep || f.status != Execution::completed) continue;
    if (!check_work(work)) break;
    auto rules = matching_rules(definition.steps[step], variables, e.at, work);
    if (rules) out[i] = std::move(*rules);
  }
  return out;
}

json::Value event_value(const Event& e, const ChosenRules& chosen) {
  json::Array facts;
  for (size_t i = 0; i < e.note.facts.size(); ++i) {
    const Fact& f = e.note.facts[i];
    json::Object line;
    constexpr std::string_view kinds[] = {"", "entered", "ended", "event"};
    line.add("kind", json::Value(kinds[static_cast<size_t>(f.kind)]));
    if (!f.step.empty()) line.add("stepId", json::Value(f.step));
    if (f.kind != Fact::Kind::event) {
      line.add("stepType", json::Value(type_of(f.step_kind).name));
      line.add("executionId", json::Value(ordinal_id(e.note.instance_id, f.ordinal)));
      line.add("attempt", json::Value(static_cast<int64_t>(f.attempt)));
    }
    if (f.kind == Fact::Kind::ended) line.add("status", json::Value(execution_name(f.status)));
    if (!f.text.empty()) line.add("text", json::Value(f.text));
    if (auto rules = chosen.find(i); rules != chosen.end()) {
      json::Array list;
      for (size_t rule : rules->second)
        list.emplace_back(static_cast<int64_t>(rule));
      line.add("rules", json::Value(std::move(list)));
    }
    facts.push_back(json::Value(std::move(line)));
  }
  json::Value out = json::object({{"event", static_cast<int64_t>(e.seq)},
                                  {"at", rfc3339(e.at, 6)},
                                  {"cause", e.note.cause},
                                  {"by", e.note.user},
                                  {"status", status_name(e.note.after)}});
  if (!e.note.reason.empty()) out.object().add("reason", json::Value(e.note.reason));
  out.object().add("facts", json::Value(std::move(facts)));
  return out;
}

// The differences between two sets of variables: {"name": {"from"?, "to"?}}.
json::Value differences(const json::Object& before, const json::Object& after) {
  json::Object out;
  for (const json::Member& m : after) {
    const json::Value* old = before.find(m.name);
    if (old && *old == m.value) continue;
    json::Object change;
    if (old) change.add("from", *old);
    change.add("to", m.value);
    out.add(m.name, json::Value(std::move(change)));
  }
  for (const json::Member& m : before)
    if (!after.has(m.name)) out.add(m.name, json::object({{"from", m.value}}));
  return json::Value(std::move(out));
}

Result<std::string> events(Service& service, const wire::Request& request) {
  std::string tenant = tenant_of(request);
  const std::string& id = request.params[0];
  TRY(std::vector<Event> all, service.events(tenant, id));
  bool with_variables = request.query_param(kEventsQuery["variables"]).value_or("true") != "false";
  json::Object before;
  json::Array items;
  size_t work = 0;
  for (const Event& e : all) {
    if (!with_variables) {
      items.push_back(event_value(e, {}));
      continue;
    }
    TRY(Instance state, service.state_at(tenant, id, e.seq));
    TRY(auto definition, service.definition(tenant, state.definition_id, state.version));
    const json::Object& after = state.variables->object;
    json::Value item = event_value(e, chosen_rules(e, *definition, after, work));
    item.object().add("variables", differences(before, after));
    before = after;
    items.push_back(std::move(item));
  }
  return json::print(json::object({{"items", json::Value(std::move(items))}}));
}

Result<Seq> seq_of(const std::string& text) {
  Seq seq = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seq);
  if (failed != std::errc() || end != text.data() + text.size() || seq == 0)
    return fail(Code::invalid, "BAD_EVENT",
                "an event is a number from the instance's events, got \"" + text + "\"");
  return seq;
}

Result<std::string> state(Service& service, const wire::Request& request) {
  TRY(Seq seq, seq_of(request.params[1]));
  TRY(Instance instance, service.state_at(tenant_of(request), request.params[0], seq));
  return service.instance_text(tenant_of(request), instance);
}

// The step of an open task in the instance's current version, since a migration may have renamed
// it.
const Step* step_of(const UserTask& task, const Instance& instance, const Definition& definition) {
  for (const Token& t : instance.tokens)
    if (t.execution == task.ordinal && t.state == TokenState::running)
      return &definition.steps[t.step];
  return nullptr;
}

Result<std::string> tasks(Service& service, const wire::Request& request) {
  TRY(Bytes cursor, unhex(request.query_param(kTasksQuery["cursor"]).value_or("")));
  auto wanted = [&](const wire::Member& row) {
    return std::string(request.query_param(row).value_or(""));
  };
  UserTask like{.instance_id = {},
                .definition_id = wanted(kTasksQuery["definitionId"]),
                .business_key = wanted(kTasksQuery["businessKey"]),
                .step_id = {},
                .form = wanted(kTasksQuery["jobType"])};
  const std::string step_id = wanted(kTasksQuery["step"]);
  const size_t limit = limit_of(request);
  json::Array items;
  do {
    std::string next;
    TRY(std::vector<UserTask> found,
        service.tasks(tenant_of(request), like, cursor, limit - items.size(), &next));
    for (const UserTask& t : found) {
      auto instance = service.instance(tenant_of(request), t.instance_id);
      if (!instance || is_final((*instance)->status)) continue;
      TRY(auto definition,
          service.definition(tenant_of(request), t.definition_id, (*instance)->version));
      const Step* step = step_of(t, **instance, *definition);
      if (!step || (!step_id.empty() && step->id != step_id)) continue;
      json::Value item = json::object({{"instanceId", t.instance_id},
                                       {"stepId", step->id},
                                       {"definitionId", t.definition_id},
                                       {"createdAt", rfc3339(t.entered, 6)},
                                       {"name", step->name}});
      if (!t.form.empty()) item.object().add("jobType", json::Value(t.form));
      if (!t.business_key.empty()) item.object().add("businessKey", json::Value(t.business_key));
      items.push_back(std::move(item));
    }
    cursor = next;
  } while (!cursor.empty() && items.size() < limit);
  json::Value out = json::object({{"items", json::Value(std::move(items))}});
  if (!cursor.empty()) out.object().add("cursor", json::Value(hex(cursor)));
  return json::print(out);
}

Result<std::string> summary(Service& service, const wire::Request& request) {
  json::Array items;
  for (const InstanceCounts::DefinitionCounts& line :
       service.counts().by_definition(tenant_of(request))) {
    json::Object by_status;
    for (size_t s = 1; s < line.by_status.size(); ++s)
      if (line.by_status[s])
        by_status.add(std::string(status_name(static_cast<Status>(s))),
                      json::Value(static_cast<int64_t>(line.by_status[s])));
    json::Value item = json::object(
        {{"definitionId", line.definition_id}, {"instances", json::Value(std::move(by_status))}});
    if (auto head = service.head(tenant_of(request), line.definition_id)) {
      item.object().add("versions", json::Value(static_cast<int64_t>((*head)->versions.size())));
      item.object().add("activeVersion", json::Value(static_cast<int64_t>((*head)->current())));
      item.object().add("paused", json::Value((*head)->paused));
      item.object().add("retired", json::Value((*head)->retired));
    }
    items.push_back(std::move(item));
  }
  return json::print(json::object({{"items", json::Value(std::move(items))}}));
}

Result<std::string> job_types(Service& service, const wire::Request& request) {
  json::Array items;
  TRY(auto paused, service.paused_types(tenant_of(request)));
  for (const WorkQueue::Depth& d : service.depths(tenant_of(request))) {
    json::Value item = json::object({{"jobType", d.queue},
                                     {"offered", static_cast<int64_t>(d.offered)},
                                     {"leased", static_cast<int64_t>(d.leased)},
                                     {"waitingPolls", static_cast<int64_t>(d.waiting_polls)},
                                     {"paused", d.paused}});
    for (const auto& [type, reason] : paused)
      if (type == d.queue) item.object().add("reason", json::Value(reason));
    items.push_back(std::move(item));
  }
  return json::print(json::object({{"items", json::Value(std::move(items))}}));
}

Result<std::string> run_dry(Service& service, const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  TRY(VariablesPtr variables, take_variables(body));
  json::Value none(json::Object{});
  const json::Value* script = body.value().find(kDryRun["script"]);
  if (script && !script->is_object())
    return fail(Code::invalid, "BAD_SCRIPT", "script must be an object of step ids");
  if (const json::Value* document = body.value().find(kDryRun["definition"])) {
    TRY(Definition definition, make_definition(*document));
    return dry_run(definition, variables->object, script ? *script : none, service.now());
  }
  TRY(std::string id, body.text(kDryRun["definitionId"]));
  if (id.empty())
    return fail(Code::invalid, "NO_DEFINITION_ID", "definitionId or definition is required");
  TRY(int64_t version, body.integer(kDryRun["definitionVersion"]));
  TRY(auto definition, service.definition(tenant_of(request), id,
                                          static_cast<uint32_t>(std::max<int64_t>(0, version))));
  return dry_run(*definition, variables->object, script ? *script : none, service.now());
}

Result<std::string> validate_definition(const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  TRY(Definition definition, make_definition(body.value()));
  json::Array list;
  for (std::string& w : warnings(definition))
    list.push_back(json::Value(std::move(w)));
  return json::print(json::object({{"id", definition.id},
                                   {"valid", true},
                                   {"steps", static_cast<int64_t>(definition.steps.size())},
                                   {"warnings", json::Value(std::move(list))}}));
}

void pause_definition(Service& service, wire::Request request, wire::Respond respond, bool paused) {
  auto body = wire::BodyReader::of(request, kOptionalBody);
  if (!body) return respond(refusal(body.error()));
  service.pause_definition(submitter_of(request), request.params[0], paused,
                           std::string(body->value().string_or(kReason["reason"])),
                           reply_with(std::move(respond), 200));
}

void pause_type(Service& service, wire::Request request, wire::Respond respond, bool paused) {
  auto body = wire::BodyReader::of(request, kOptionalBody);
  if (!body) return respond(refusal(body.error()));
  service.pause_type(submitter_of(request), request.params[0], paused,
                     std::string(body->value().string_or(kReason["reason"])),
                     reply_with(std::move(respond), 200));
}

}  // namespace

std::vector<wire::Route> operator_routes(Service& s) {
  using wire::Request, wire::Respond, wire::slow;
  const std::string p = "/pawl/v1/processes";
  auto read = [&s](Result<std::string> (*verb)(Service&, const Request&)) {
    return [&s, verb](Request r, Respond a) { respond_with(a, [&] { return verb(s, r); }); };
  };
  return {
      slow({"GET", p + "/instances", read(list), "Lists instances that fit a filter, newest first.",
            &kFindInstances}),
      {"GET", p + "/instances/{id}", read(show),
       "Shows an instance with its tokens: jobs, timers, open tasks.", &kShowInstance},
      slow({"GET", p + "/instances/{id}/events", read(events),
            "Lists everything that happened to an instance, with the variables each event "
            "changed.",
            &kListEvents}),
      slow({"GET", p + "/instances/{id}/events/{event}", read(state),
            "Shows the instance as it was after an event.", &kStateAt}),
      slow({"GET", p + "/tasks", read(tasks), "Lists open user tasks, oldest first.", &kListTasks}),
      slow({"GET", p + "/definitions", read(summary), "Counts instances by definition and status.",
            &kCountDefinitions}),
      {"GET", p + "/job-types", read(job_types),
       "Lists job types with their offered jobs, leased jobs and waiting polls.", &kListJobTypes},
      slow({"POST", p + "/dry-run", read(run_dry),
            "Walks a definition with scripted results and writes nothing.", &kRunDry}),
      slow({"POST", p + "/validate",
            [](Request r, Respond a) { respond_with(a, [&] { return validate_definition(r); }); },
            "Checks a definition without storing it.", &kValidate}),
      {"POST", p + "/definitions/{id}/pause",
       [&s](Request r, Respond a) { pause_definition(s, std::move(r), std::move(a), true); },
       "Refuses new instances of a definition. Chained instances start paused.", &kPauseDefinition},
      {"POST", p + "/definitions/{id}/resume",
       [&s](Request r, Respond a) { pause_definition(s, std::move(r), std::move(a), false); },
       "Accepts new instances of a definition again.", &kResumeDefinition},
      {"POST", p + "/job-types/{type}/pause",
       [&s](Request r, Respond a) { pause_type(s, std::move(r), std::move(a), true); },
       "Hands out no more jobs of a type.", &kPauseType},
      {"POST", p + "/job-types/{type}/resume",
       [&s](Request r, Respond a) { pause_type(s, std::move(r), std::move(a), false); },
       "Hands out jobs of a type again.", &kResumeType},
  };
}

}  // namespace pawl::processes

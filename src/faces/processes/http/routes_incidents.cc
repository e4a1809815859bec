// Routes that repair instances: one instance, or many by ids or filter.

#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/http/operators.h"
#include "faces/processes/limits.h"
#include "faces/processes/outcome_collector.h"
#include "faces/processes/run/migration.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

constexpr wire::Choices kOperations{"retry", "variables", "skip",    "move",      "cancel",
                                    "pause", "resume",    "migrate", "compensate"};
// What an operation takes. Each takes some of the members.
constexpr RequestShape kOrder{
    "OperationRequest",
    {text("reason", "Why, for the history.").example(R"("asked by support")"),
     text("stepId", "Of skip and retry: the step."),
     text("from", "Of move: the step that is left."), text("to", "Of move: the step to enter."),
     variables("variables", "Of variables, retry and skip: the values to set."),
     texts("remove", "Of variables: the names to remove."),
     integer("version", "Of migrate: the version; none: the last one.")
         .range(std::nullopt, UINT32_MAX),
     map("steps", "Of migrate: the new id of each step that was renamed.", wire::Kind::text),
     flag("preview", "Of migrate, and of bulk operations: only say what would happen.")
         .by_default(false)}};
constexpr RequestShape kBulk{
    "BulkOperationRequest",
    kOrder,
    {texts("instanceIds", "The instances.").range(std::nullopt, kBatchItems),
     object("filter", "Or: the instances that fit all members.", kFilterBody)
         .example(R"({"status":"FAILED"})")}};
constexpr RequestShape kRestart{
    "RestartRequest",
    {text("reason", "Why, for the history."), text("stepId", "The step to begin at."),
     integer("event", "The event of the history to begin at; none: the first."),
     variables("variables", "Values that differ from those of that time.")}};
constexpr AnswerShape kMove{"MigrationMove", {text("from"), text("to")}};
constexpr AnswerShape kPlan{"MigrationPlan",
                            {text("instanceId"), integer("fromVersion").optional(),
                             integer("toVersion").optional(), list("moves", "", kMove).optional(),
                             texts("problems", "Why it cannot migrate; empty: it can.")}};
constexpr AnswerShape kBulkItem{
    "BulkOutcome",
    {text("instanceId"), flag("ok").optional(),
     choice("status", kInstanceStatuses, "The status after the operation.").optional(),
     text("reason", "Why it failed.").optional(), integer("fromVersion").optional(),
     integer("toVersion").optional(), list("moves", "Of a preview.", kMove).optional(),
     texts("problems", "Of a preview.").optional()}};
constexpr AnswerShape kBulkAnswer{"BulkOutcomes",
                                  {count("matched"), count("succeeded").optional(),
                                   count("failed").optional(), list("items", "", kBulkItem)}};
constexpr AnswerShape kIncident{
    "Incident",
    {text("definitionId").example(R"("loan")"), text("stepId"),
     text("fingerprint", "The message without what differs between failures of one kind."),
     count("count"), time("firstAt"), time("lastAt"), text("sampleInstanceId"),
     text("sampleReason")}};
constexpr AnswerShape kIncidents{
    "Incidents", {list("items", "", kIncident), flag("more", "There are more than were read.")}};
constexpr RequestShape kOperationPath{
    "", {text("id", "The id of the instance."), choice("operation", kOperations)}};
constexpr RequestShape kBulkPath{"", {choice("operation", kOperations)}};

constexpr Operation kListIncidents{.id = "listIncidents",
                                   .query = &kFilterQuery,
                                   .replies = {{200, "Failures by kind.", kIncidents}}};
constexpr Operation kRestartInstance{.id = "restartInstance",
                                     .path = &kInstancePath,
                                     .headers = &wire::kIdempotencyHeader,
                                     .body = wire::optional_body(kRestart),
                                     .replies = {{201, "The new instance.", kInstance}},
                                     .errors = {409, 422}};
constexpr Operation kOperate{
    .id = "operateInstance",
    .path = &kOperationPath,
    .headers = &wire::kIdempotencyHeader,
    .body = wire::optional_body(kOrder),
    .replies = {{200, "The instance, or the plan of a migration.", wire::either(kInstance, kPlan)}},
    .errors = {409, 422}};
constexpr Operation kOperateMany{.id = "operateInstances",
                                 .path = &kBulkPath,
                                 .body = {kBulk},
                                 .replies = {{200, "The outcome of each.", kBulkAnswer}},
                                 .errors = {409, 422}};

Result<void> check_operation(const std::string& operation) {
  if (std::find(kOperations.begin(), kOperations.end(), operation) != kOperations.end()) return {};
  return fail(Code::not_found, "NO_OPERATION",
              "unknown operation \"" + operation +
                  "\"; known are retry, variables, skip, move, cancel, pause, resume, migrate, "
                  "compensate, restart");
}

// Refuses members of a wrong type, which would be ignored otherwise.
Result<void> check_order(const wire::MemberReader& body) {
  for (std::string_view name : {kOrder["reason"], kOrder["stepId"], kOrder["from"], kOrder["to"]})
    TRY_OK(body.text(name));
  TRY_OK(body.object(kOrder["variables"]));
  TRY(const json::Value* steps, body.object(kOrder["steps"]));
  if (steps)
    for (const json::Member& m : steps->object())
      TRY_OK(wire::MemberReader(*steps, kBody).text(m.name));
  TRY_OK(body.texts(kOrder["remove"]));
  TRY_OK(body.flag(kOrder["preview"]));
  return {};
}

json::Value order_for(const json::Value& body, const std::string& operation,
                      std::string_view instance_id) {
  json::Value order = body;
  order.object().set("operation", json::Value(operation));
  order.object().set("instanceId", json::Value(instance_id));
  order.object().erase(kBulk["filter"]);
  order.object().erase(kBulk["instanceIds"]);
  return order;
}

Result<json::Value> preview_one(Service& service, const std::string& tenant,
                                const wire::MemberReader& body, const Instance& instance) {
  TRY(auto from, service.definition(tenant, instance.definition_id, instance.version));
  TRY(int64_t version, body.integer(kOrder["version"]));
  TRY(auto to, service.definition(tenant, instance.definition_id,
                                  static_cast<uint32_t>(std::max<int64_t>(0, version))));
  MigrationPlan plan = plan_migration(instance, *from, *to, body.value().find(kOrder["steps"]));
  json::Array moves, problems;
  for (const MigrationPlan::Move& m : plan.moves)
    moves.push_back(json::object({{"from", m.from}, {"to", m.to}}));
  for (const std::string& p : plan.problems)
    problems.push_back(json::Value(p));
  return json::object({{"instanceId", instance.id},
                       {"fromVersion", static_cast<int64_t>(from->version)},
                       {"toVersion", static_cast<int64_t>(to->version)},
                       {"moves", json::Value(std::move(moves))},
                       {"problems", json::Value(std::move(problems))}});
}

// Without "version" the latest is meant. The program needs its number.
Result<void> settle_version(Service& service, const std::string& tenant, json::Value& order,
                            std::string_view definition_id) {
  TRY(int64_t version, wire::MemberReader(order, kBody).integer(kOrder["version"]));
  if (version > 0) return {};
  TRY(auto head, service.head(tenant, definition_id));
  order.object().set(std::string(kOrder["version"].name),
                     json::Value(static_cast<int64_t>(head->versions.size())));
  return {};
}

void operate_one(Service& service, wire::Request request, wire::Respond respond) {
  const std::string &id = request.params[0], &operation = request.params[1];
  auto body = wire::BodyReader::of(request, kOptionalBody);
  if (!body) return respond(refusal(body.error()));
  if (auto ok = check_operation(operation); !ok) return respond(refusal(ok.error()));
  if (auto ok = check_order(*body); !ok) return respond(refusal(ok.error()));
  json::Value order = order_for(body->value(), operation, id);
  if (operation == "migrate") {
    auto instance = service.instance(request.caller.tenant, id);
    if (!instance) return respond(refusal(instance.error()));
    if (body->flag(kOrder["preview"]).value_or(false))
      return respond_with(respond, [&]() -> Result<std::string> {
        TRY(json::Value plan, preview_one(service, request.caller.tenant, *body, **instance));
        return json::print(plan);
      });
    if (auto done =
            settle_version(service, request.caller.tenant, order, (*instance)->definition_id);
        !done)
      return respond(refusal(done.error()));
  }
  service.operate(submitter_of(request), order, reply_with(std::move(respond), 200));
}

// The instances that a bulk order names, by ids or by filter.
Result<std::vector<std::shared_ptr<const Instance>>> selected_instances(
    Service& service, const std::string& tenant, const wire::MemberReader& body) {
  std::vector<std::shared_ptr<const Instance>> out;
  TRY(std::vector<std::string> ids, body.texts(kBulk["instanceIds"]));
  if (ids.size() > kBatchItems)
    return fail(Code::too_large, "TOO_MANY_ITEMS",
                "instanceIds may name " + std::to_string(kBatchItems) + " instances");
  for (const std::string& id : ids) {
    TRY(auto one, service.instance(tenant, id));
    out.push_back(std::move(one));
  }
  if (!ids.empty()) return out;
  const json::Value* filter = body.find(kBulk["filter"]);
  if (!filter || !filter->is_object() || filter->object().empty())
    return fail(Code::invalid, "NO_FILTER",
                "say which: instanceIds, or a filter with at least one member");
  TRY(InstanceFilter f, filter_of_body(*filter));
  TRY(Service::FoundInstances found, service.find(tenant, f, {}, kBatchItems));
  return std::move(found.items);
}

std::string bulk_preview(Service& service, const std::string& tenant,
                         const wire::MemberReader& body, const std::string& operation,
                         const std::vector<std::shared_ptr<const Instance>>& all) {
  json::Array items;
  for (const auto& instance : all) {
    json::Value item =
        json::object({{"instanceId", instance->id}, {"status", status_name(instance->status)}});
    if (operation == "migrate") {
      auto plan = preview_one(service, tenant, body, *instance);
      item = plan ? std::move(*plan)
                  : json::object({{"instanceId", instance->id},
                                  {"problems",
                                   json::Value(json::Array{json::Value(plan.error().message)})}});
    }
    items.push_back(std::move(item));
  }
  return json::print(json::object(
      {{"matched", static_cast<int64_t>(all.size())}, {"items", json::Value(std::move(items))}}));
}

void bulk(Service& service, wire::Request request, wire::Respond respond) {
  const std::string& operation = request.params[0];
  std::string tenant = request.caller.tenant;
  auto body = wire::BodyReader::of(request, kBody);
  if (!body) return respond(refusal(body.error()));
  if (auto ok = check_operation(operation); !ok) return respond(refusal(ok.error()));
  if (auto ok = check_order(*body); !ok) return respond(refusal(ok.error()));
  auto all = selected_instances(service, tenant, *body);
  if (!all) return respond(refusal(all.error()));
  if (body->flag(kOrder["preview"]).value_or(false))
    return respond(ok(200, bulk_preview(service, tenant, *body, operation, *all)));
  if (all->empty())
    return respond(ok(200, "{\"matched\":0,\"succeeded\":0,\"failed\":0,\"items\":[]}"));
  std::vector<std::string> ids;
  for (const auto& instance : *all)
    ids.push_back(instance->id);
  auto answer = [ids, respond = std::move(respond)](OutcomeCollector::Outcomes outcomes) mutable {
    json::Array items;
    size_t failed = 0;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      json::Value item = json::object({{"instanceId", ids[i]}, {"ok", outcomes[i].has_value()}});
      if (outcomes[i]) {
        // The answer holds the status after the operation: a retry may have failed again.
        if (auto after = json::parse(*outcomes[i]))
          item.object().add("status", json::Value(after->string_or("status")));
      } else {
        ++failed;
        item.object().add("reason", json::Value(outcomes[i].error().message));
      }
      items.push_back(std::move(item));
    }
    respond(
        ok(200, json::print(json::object({{"matched", static_cast<int64_t>(ids.size())},
                                          {"succeeded", static_cast<int64_t>(ids.size() - failed)},
                                          {"failed", static_cast<int64_t>(failed)},
                                          {"items", json::Value(std::move(items))}}))));
  };
  auto collector = OutcomeCollector::create(ids.size(), std::move(answer));
  for (size_t i = 0; i < ids.size(); ++i) {
    json::Value order = order_for(body->value(), operation, ids[i]);
    Done done = OutcomeCollector::callback(collector, i);
    if (operation == "migrate")
      if (auto settled = settle_version(service, tenant, order, (*all)[i]->definition_id);
          !settled) {
        done(fail(std::move(settled.error())));
        continue;
      }
    service.operate({request.caller}, order, std::move(done));
  }
}

// The message without digits and quoted parts, which differ between failures of one kind.
std::string fingerprint(const std::string& message) {
  std::string out;
  bool quoted = false;
  for (char c : message.substr(0, 300)) {
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      continue;
    if (c >= '0' && c <= '9') {
      if (out.empty() || out.back() != '#') out += '#';
    } else {
      out += c;
    }
  }
  return out;
}

// Incidents of one kind: of a definition and step, with the same message.
struct IncidentGroup {
  size_t count = 0;
  Time first = INT64_MAX, last = 0;
  std::string sample_id, sample;

  void add(const Instance& instance, const std::string& reason, Time at) {
    if (count++ == 0) {
      sample_id = instance.id;
      sample = reason;
    }
    first = std::min(first, at);
    last = std::max(last, at);
  }
};
using IncidentGroups = std::map<std::tuple<std::string, std::string, std::string>, IncidentGroup>;

// The step whose timer or job is in quarantine; empty when the instance has left it.
std::string parked_step(const Service::ParkedEffect& one, const Definition& definition) {
  for (const Token& t : one.instance->tokens)
    if (one.ordinal && (t.execution == one.ordinal || t.job == one.ordinal))
      return definition.steps[t.step].id;
  return {};
}

Result<void> add_parked(Service& service, const std::string& tenant, const InstanceFilter& filter,
                        IncidentGroups& groups) {
  for (const Service::ParkedEffect& one : service.parked(tenant)) {
    if (!service.is_listed(tenant, *one.instance, filter)) continue;
    TRY(auto definition,
        service.definition(tenant, one.instance->definition_id, one.instance->version));
    const std::string reason = "Quarantined: the server crashed twice while it settled the " +
                               one.kind + " effect \"" + one.effect_id +
                               "\"; retry the instance to deliver it again";
    groups[{one.instance->definition_id, parked_step(one, *definition), fingerprint(reason)}].add(
        *one.instance, reason, one.since);
  }
  return {};
}

Result<std::string> incidents(Service& service, const wire::Request& request) {
  IncidentGroups groups;
  TRY(InstanceFilter filter, filter_of_query(request));
  TRY_OK(add_parked(service, request.caller.tenant, filter, groups));
  filter.status = Status::failed;
  TRY(Service::FoundInstances found,
      service.find(request.caller.tenant, filter, {}, 10 * kBatchItems));
  for (const auto& instance : found.items) {
    TRY(auto definition,
        service.definition(request.caller.tenant, instance->definition_id, instance->version));
    std::string step;
    for (const Token& t : instance->tokens)
      if (t.state == TokenState::failed) step = definition->steps[t.step].id;
    groups[{instance->definition_id, step, fingerprint(instance->failure)}].add(
        *instance, instance->failure, instance->completed);
  }
  json::Array items;
  for (const auto& [name, g] : groups)
    items.push_back(json::object({{"definitionId", std::get<0>(name)},
                                  {"stepId", std::get<1>(name)},
                                  {"fingerprint", std::get<2>(name)},
                                  {"count", static_cast<int64_t>(g.count)},
                                  {"firstAt", rfc3339(g.first, 6)},
                                  {"lastAt", rfc3339(g.last, 6)},
                                  {"sampleInstanceId", g.sample_id},
                                  {"sampleReason", g.sample}}));
  return json::print(
      json::object({{"items", json::Value(std::move(items))}, {"more", !found.cursor.empty()}}));
}

bool enters(const Fact& f, std::string_view step) {
  return f.kind == Fact::Kind::entered && (step.empty() || f.step == step);
}

// The last event that entered the step, not after `event` if that is given. Without a step and an
// event: the first event.
const Event* restart_event(const std::vector<Event>& events, int64_t event, std::string_view step) {
  const Event* found = nullptr;
  for (const Event& e : events) {
    if (event && static_cast<int64_t>(e.seq) > event) break;
    if (std::none_of(e.note.facts.begin(), e.note.facts.end(),
                     [&](const Fact& f) { return enters(f, step); }))
      continue;
    found = &e;
    if (!event && step.empty()) break;
  }
  return found;
}

// The command that starts a new instance at a past step of this one, with the variables of that
// time.
Result<StartCommand> restart_command(Service& service, const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kOptionalBody));
  const std::string &tenant = request.caller.tenant, &id = request.params[0];
  TRY_OK(check_order(body));
  TRY(std::string step, body.text(kRestart["stepId"]));
  TRY(int64_t event, body.integer(kRestart["event"]));
  TRY(std::vector<Event> events, service.events(tenant, id));
  bool check_operation = !event || std::any_of(events.begin(), events.end(), [&](const Event& e) {
    return static_cast<int64_t>(e.seq) == event;
  });
  if (!check_operation)
    return fail(Code::not_found, "NO_EVENT",
                "instance \"" + id + "\" has no event " + std::to_string(event));
  const Event* at = restart_event(events, event, step);
  if (!at)
    return fail(Code::not_found, "NO_SUCH_VISIT",
                "instance \"" + id + "\" never entered step \"" + step + "\"" +
                    (event ? " before event " + std::to_string(event) : ""));
  const std::vector<Fact>& facts = at->note.facts;
  // The last visit of the named step in the event, or the first step that the event entered.
  size_t visit = 0;
  for (size_t i = facts.size(); i-- > 0;)
    if (enters(facts[i], step)) {
      visit = i;
      if (!step.empty()) break;
    }
  TRY(Instance state, service.state_at(tenant, id, at->seq));
  // Undoes what later steps of the same event did to the variables.
  json::Object variables = state.variables->object;
  for (size_t i = facts.size(); i-- > visit;)
    if (!facts[i].undo.empty()) undo(variables, facts[i].undo);
  StartCommand c{.definition_id = state.definition_id,
                 .version = state.version,
                 .business_key = state.business_key,
                 .at_step = facts[visit].step,
                 .previous_id = id};
  if (state.priority) c.priority = state.priority;
  if (!state.fairness_key.empty()) c.fairness_key = state.fairness_key;
  TRY(c.reason, body.text(kRestart["reason"]));
  if (const json::Value* set = body.find(kRestart["variables"]); set && set->is_object())
    for (const json::Member& m : set->object())
      variables.set(m.name, m.value);
  c.variables = make_variables(std::move(variables));
  return c;
}

void restart(Service& service, wire::Request request, wire::Respond respond) {
  auto command = restart_command(service, request);
  if (!command) return respond(refusal(command.error()));
  service.start(submitter_of(request), std::move(*command), reply_with(std::move(respond), 201));
}

}  // namespace

std::vector<wire::Route> incident_routes(Service& s) {
  using wire::Request, wire::Respond, wire::slow;
  const std::string p = "/pawl/v1/processes";
  return {
      slow({"GET", p + "/incidents",
            [&s](Request r, Respond a) { respond_with(a, [&] { return incidents(s, r); }); },
            "Groups failed instances by definition, step and kind of failure.", &kListIncidents}),
      slow({"POST", p + "/instances/{id}/restart",
            [&s](Request r, Respond a) { restart(s, std::move(r), std::move(a)); },
            "Starts a new instance from a past step or event of this one.", &kRestartInstance}),
      {"POST", p + "/instances/{id}/{operation}",
       [&s](Request r, Respond a) { operate_one(s, std::move(r), std::move(a)); },
       "Retries, skips, moves, edits variables, pauses, resumes, cancels, migrates or compensates "
       "an instance.",
       &kOperate},
      slow({"POST", p + "/bulk/{operation}",
            [&s](Request r, Respond a) { bulk(s, std::move(r), std::move(a)); },
            "Runs an operation on many instances, by ids or filter. With preview it only lists "
            "them.",
            &kOperateMany}),
  };
}

}  // namespace pawl::processes

// Routes of stored queries: expressions of a definition, evaluated over the variables of an
// instance.

#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/limits.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

constexpr AnswerShape kAnswered{
    "QueryAnswer",
    {text("name").example(R"("total")"), any("value").example("100"),
     choice("status", kInstanceStatuses), time("updatedAt", "The last change of the instance.")}};
constexpr AnswerShape kOneAnswer{
    "QueryOutcome",
    {text("name").example(R"("total")"), any("value").optional().example("100"),
     text("error", "Why there is no value.").optional()}};
constexpr AnswerShape kAnswers{"QueryOutcomes", {list("items", "", kOneAnswer)}};
constexpr RequestShape kQueryPath{
    "", {text("id", "The id of the instance."), text("name", "The name of the query.")}};
constexpr Operation kAskAll{.id = "runInstanceQueries",
                            .path = &kInstancePath,
                            .replies = {{200, "The answer of each query.", kAnswers}}};
constexpr Operation kAskOne{
    .id = "runInstanceQuery", .path = &kQueryPath, .replies = {{200, "The answer.", kAnswered}}};

Result<json::Value> evaluate(const Query& query, const Instance& instance, Time now, size_t& work) {
  TRY(json::Value value, query.expression.evaluate(instance.variables->object, now, &work));
  if (work > kWorkPerTurn)
    return fail(Code::invalid, "WorkLimitReached",
                "WorkLimitReached: the queries of one request may make " +
                    std::to_string(kWorkPerTurn) + " bytes");
  return value;
}

std::unexpected<Error> no_query(const Definition& definition, const std::string& name) {
  std::string known;
  for (const Query& q : definition.queries)
    known.append(known.empty() ? "" : ", ").append(q.name);
  return fail(Code::not_found, "NO_QUERY",
              "definition \"" + definition.id + "\" version " + std::to_string(definition.version) +
                  " has no query \"" + name.substr(0, 64) + "\"" +
                  (known.empty() ? "" : "; it has " + known));
}

struct Queried {
  std::shared_ptr<const Instance> instance;
  std::shared_ptr<const Definition> definition;
};

Result<Queried> queried(Service& service, const wire::Request& request) {
  const std::string& tenant = request.caller.tenant;
  Queried out;
  TRY(out.instance, service.instance(tenant, request.params[0]));
  TRY(out.definition,
      service.definition(tenant, out.instance->definition_id, out.instance->version));
  return out;
}

Result<std::string> one_query(Service& service, const wire::Request& request) {
  TRY(Queried of, queried(service, request));
  const std::string& name = request.params[1];
  size_t work = 0;
  for (const Query& q : of.definition->queries) {
    if (q.name != name) continue;
    TRY(json::Value value, evaluate(q, *of.instance, service.now(), work));
    return json::print(json::object({{"name", name},
                                     {"value", std::move(value)},
                                     {"status", status_name(of.instance->status)},
                                     {"updatedAt", rfc3339(of.instance->updated, 6)}}));
  }
  return no_query(*of.definition, name);
}

// An expression that fails has an "error" instead of a "value": the others are still of use.
Result<std::string> all_queries(Service& service, const wire::Request& request) {
  TRY(Queried of, queried(service, request));
  json::Array items;
  size_t work = 0;
  for (const Query& q : of.definition->queries) {
    json::Object item;
    item.add("name", json::Value(q.name));
    auto value = evaluate(q, *of.instance, service.now(), work);
    if (value)
      item.add("value", std::move(*value));
    else
      item.add("error", json::Value(value.error().message));
    items.push_back(json::Value(std::move(item)));
  }
  return json::print(json::object({{"items", json::Value(std::move(items))}}));
}

}  // namespace

std::vector<wire::Route> query_routes(Service& s) {
  using wire::Request, wire::Respond, wire::slow;
  const std::string p = "/pawl/v1/processes/instances/{id}/queries";
  return {
      slow({"GET", p,
            [&s](Request r, Respond a) { respond_with(a, [&] { return all_queries(s, r); }); },
            "Evaluates every stored query of the instance's definition.", &kAskAll}),
      slow({"GET", p + "/{name}",
            [&s](Request r, Respond a) { respond_with(a, [&] { return one_query(s, r); }); },
            "Evaluates a stored query over the variables of an instance.", &kAskOne}),
  };
}

}  // namespace pawl::processes

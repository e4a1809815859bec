#include <fmt/format.h>

#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "faces/entities/search/groups.h"
#include "json/text.h"

// Counts of entities by model and state, and grouped statistics.

namespace pawl::entities {

namespace {

constexpr size_t kStates = 1000;

struct StateFilter {
  std::optional<std::pair<std::string, int32_t>> model;
  std::vector<std::string> states;
  bool takes(const StateCounts::Row& r) const {
    if (model && (r.model != model->first || r.version != model->second)) return false;
    return states.empty() || std::find(states.begin(), states.end(), r.state) != states.end();
  }
};

Result<StateFilter> state_filter_of(HttpExchange& http) {
  StateFilter w;
  if (!http.request.params.empty()) {
    TRY(int32_t version, http.version(1));
    w.model.emplace(http.param(0), version);
  }
  w.states = http.request.query_params(http::kStatesQuery["states"]);
  if (w.states.size() > kStates)
    return bad_request(fmt::format("at most {} states may be named", kStates));
  return w;
}

void with_counts(const HttpExchangePtr& http, std::function<json::Value(const StateCounts&)> show) {
  http->service().counts(http->context(),
                         [http, show = std::move(show)](Result<StateCounts> counts) {
                           if (!counts) return http->refuse(counts.error());
                           http->json(json::print(show(*counts)));
                         });
}

Result<void> by_state(const HttpExchangePtr& http) {
  TRY(StateFilter wanted, state_filter_of(*http));
  with_counts(http, [wanted = std::move(wanted)](const StateCounts& counts) {
    json::Array out;
    for (const StateCounts::Row& r : counts.rows())
      if (wanted.takes(r))
        out.push_back(json::object({{"modelName", r.model},
                                    {"modelVersion", r.version},
                                    {"state", r.state},
                                    {"count", r.count}}));
    return json::Value(std::move(out));
  });
  return {};
}

json::Value total(const StateCounts& counts, const std::string& model, int32_t version) {
  return json::object(
      {{"modelName", model}, {"modelVersion", version}, {"count", counts.total(model, version)}});
}

Result<void> of_all(const HttpExchangePtr& http) {
  TRY(std::vector<Model> models, http->service().models(http->tenant()));
  with_counts(http, [models = std::move(models)](const StateCounts& counts) {
    json::Array out;
    for (const Model& m : models)
      out.push_back(total(counts, m.name, m.version));
    return json::Value(std::move(out));
  });
  return {};
}

Result<void> of_one(const HttpExchangePtr& http) {
  TRY(StateFilter wanted, state_filter_of(*http));
  with_counts(http, [model = *wanted.model](const StateCounts& counts) {
    return total(counts, model.first, model.second);
  });
  return {};
}

Result<Bytes> run(HttpExchange& http, Query query, const Grouping& grouping, const Model& model) {
  query.hold = {};  // groups hold no entities
  Groups groups(grouping);
  TRY_OK(search(http.service().kernel().snapshot(), query, &model,
                [&](const EntityView& e) { return groups.add(e); }));
  return groups.answer();
}

Result<std::optional<Time>> time_in(const json::Value& body) {
  const json::Value* given = body.find(kGrouping["pointInTime"]);
  if (!given || given->is_null()) return std::optional<Time>();
  auto time = parse_rfc3339(given->is_string() ? given->string() : "");
  if (!time)
    return fail(Code::invalid, "MALFORMED_REQUEST",
                "'pointInTime' must be an RFC 3339 time such as 2026-11-15T13:32:00Z");
  return std::optional(*time);
}

Result<void> grouped(const HttpExchangePtr& http) {
  TRY(int32_t version, http->version(1));
  TRY(ModelPtr model, http->service().model(http->tenant(), http->param(0), version));
  if (!model) return fail(model_not_found(http->param(0), version));
  TRY(json::Value body, http->body());
  TRY(Grouping grouping, parse_grouping(body));
  Query query{.tenant = http->tenant(), .model = model->name, .version = version};
  if (const json::Value* c = body.find(kGrouping["condition"]); c && !c->is_null()) {
    TRY(query.condition,
        http->service().condition(query.tenant, query.model, query.version, *c, true));
    if (query.condition->function())
      return bad_request(
          "a function condition is for workflows; a statistic cannot ask compute members");
  }
  TRY(query.at, http->time(http::kAtQuery["pointInTime"]));
  if (!query.at) {
    TRY(query.at, time_in(body));
  }
  if (http->context().reads_in_transaction(query.at)) {
    http->service().act(
        http->context(), "groups",
        json::object({{"name", query.model}, {"version", version}, {"query", std::move(body)}}),
        reply_to(http));
    return {};
  }
  return http->service().run_query(std::move(query), http->watch_client(),
                                   [http, grouping, model](const Query& limited) {
                                     http->reply(run(*http, limited, grouping, *model));
                                   });
}

}  // namespace

void add_stats_routes(RouteTable& routes) {
  routes.add_async("GET", "/entity/stats", of_all, "The number of entities of each model.",
                   http::kCountAll);
  routes.slow();
  routes.add_async("GET", "/entity/stats/{name}/{version}", of_one,
                   "The number of entities of a model.", http::kCountOne);
  routes.add_async("GET", "/entity/stats/states", by_state, "The number of entities in each state.",
                   http::kCountStates);
  routes.slow();
  routes.add_async("GET", "/entity/stats/states/{name}/{version}", by_state,
                   "The number of entities of a model in each state.", http::kCountModelStates);
  routes.slow();
  routes.add_async(
      "POST", "/entity/stats/{name}/{version}/query", grouped,
      "Counts and aggregations by group: groupBy, aggregations, condition, pointInTime, limit.",
      http::kGroupEntities);
}

}  // namespace pawl::entities

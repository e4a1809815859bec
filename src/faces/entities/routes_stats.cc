#include <fmt/format.h>

#include "condition/operators.h"
#include "faces/entities/http.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

constexpr size_t kStates = 1000;
// Groups of one stats query; more is a report, not a statistic.
constexpr size_t kGroups = 10'000;

struct Wanted {
  std::optional<std::pair<std::string, int32_t>> model;
  std::vector<std::string> states;
  bool takes(const Counts::Row& r) const {
    if (model && (r.model != model->first || r.version != model->second)) return false;
    return states.empty() || std::find(states.begin(), states.end(), r.state) != states.end();
  }
};

Result<Wanted> wanted_of(Http& http) {
  Wanted w;
  if (!http.request.params.empty()) {
    TRY(int32_t version, http.version(1));
    w.model.emplace(http.param(0), version);
    TRY(ModelPtr model, http.service().model(http.tenant(), http.param(0), version));
    if (!model) return fail(model_not_found(http.param(0), version));
  }
  w.states = http.request.query_params("states");
  if (w.states.size() > kStates) return bad_request(fmt::format("at most {} states may be named", kStates));
  return w;
}

Result<Bytes> by_state(Http& http) {
  TRY(Wanted wanted, wanted_of(http));
  json::Array out;
  for (const Counts::Row& r : http.service().counts().by_state(http.tenant()))
    if (wanted.takes(r)) out.push_back(json::object({{"modelName", r.model}, {"modelVersion", r.version}, {"state", r.state}, {"count", r.count}}));
  return json::print(out);
}

json::Value total(Http& http, const std::string& model, int32_t version) {
  return json::object({{"modelName", model}, {"modelVersion", version}, {"count", http.service().counts().total(http.tenant(), model, version)}});
}

Result<Bytes> of_all(Http& http) {
  TRY(std::vector<Model> models, http.service().models(http.tenant()));
  json::Array out;
  for (const Model& m : models) out.push_back(total(http, m.name, m.version));
  return json::print(out);
}

Result<Bytes> of_one(Http& http) {
  TRY(Wanted wanted, wanted_of(http));
  return json::print(total(http, wanted.model->first, wanted.model->second));
}

// Counts, and sums over number fields, of the entities that a condition matches, by field values.
struct GroupQuery {
  std::vector<std::string> names;
  std::vector<condition::Path> paths;
  std::vector<std::pair<std::string, condition::Path>> sums;
};
struct Group {
  json::Array key;
  uint64_t count = 0;
  std::vector<double> sum, least, most;
  std::vector<uint64_t> numbers;
};

Result<GroupQuery> group_query(const json::Value& body) {
  GroupQuery q;
  for (const char* name : {"groupBy", "aggregate"}) {
    const json::Value* list = body.find(name);
    if (!list || list->is_null()) continue;
    if (!list->is_array() || list->array().size() > 8) return bad_request(fmt::format("'{}' must be an array of at most 8 field paths", name));
    for (const json::Value& p : list->array()) {
      if (!p.is_string()) return bad_request(fmt::format("'{}' must hold field paths such as \"$.k\"", name));
      if (std::string_view(name) == "groupBy") {
        q.names.push_back(p.string());
        q.paths.emplace_back(p.string());
      } else {
        q.sums.emplace_back(p.string(), condition::Path(p.string()));
      }
    }
  }
  return q;
}

void take(Group& g, const GroupQuery& q, const EntityView& e) {
  ++g.count;
  g.sum.resize(q.sums.size());
  g.least.resize(q.sums.size());
  g.most.resize(q.sums.size());
  g.numbers.resize(q.sums.size());
  for (size_t i = 0; i < q.sums.size(); ++i) {
    condition::Field f = q.sums[i].second.find(e.data);
    double v;
    if (f.kind != condition::Field::number || !condition::read_number(f.text, v)) continue;
    g.sum[i] += v;
    g.least[i] = g.numbers[i] ? std::min(g.least[i], v) : v;
    g.most[i] = g.numbers[i] ? std::max(g.most[i], v) : v;
    ++g.numbers[i];
  }
}

json::Value key_part(const std::string& name, const condition::Path& path, const EntityView& e) {
  if (name == "state") return e.state;
  condition::Field f = path.find(e.data);
  std::string room;
  if (f.is_null()) return nullptr;
  if (f.kind == condition::Field::number) return json::Number{std::string(f.text)};
  if (f.kind == condition::Field::boolean) return f.text == "true";
  return condition::text_of(f, room);
}

json::Value show(const Group& g, const GroupQuery& q) {
  json::Object key, figures;
  for (size_t i = 0; i < q.names.size(); ++i) key.set(q.names[i], g.key[i]);
  for (size_t i = 0; i < q.sums.size(); ++i) {
    json::Value mean = g.numbers[i] ? json::Value(g.sum[i] / static_cast<double>(g.numbers[i])) : json::Value();
    figures.set(q.sums[i].first, json::object({{"count", g.numbers[i]}, {"sum", g.sum[i]}, {"min", g.least[i]}, {"max", g.most[i]}, {"avg", mean}}));
  }
  json::Object out;
  out.add("group", std::move(key));
  out.add("count", g.count);
  if (!q.sums.empty()) out.add("figures", std::move(figures));
  return out;
}

Result<Bytes> run_grouped(Http& http, const Query& query, const GroupQuery& q, const Model& model) {
  std::map<std::string, Group> groups;
  TRY_OK(search(http.service().door().look(), query, &model, [&](const EntityView& e) {
    json::Array key;
    for (size_t i = 0; i < q.names.size(); ++i) key.push_back(key_part(q.names[i], q.paths[i], e));
    Group& g = groups[json::print(key)];
    g.key = std::move(key);
    take(g, q, e);
    return groups.size() <= kGroups;
  }));
  if (groups.size() > kGroups) return bad_request(fmt::format("the query makes more than {} groups; group by a field with fewer values", kGroups));
  json::Array out;
  for (const auto& [name, g] : groups) out.push_back(show(g, q));
  return json::print(json::object({{"modelName", model.name}, {"modelVersion", model.version}, {"groups", std::move(out)}}));
}

Result<void> grouped(const HttpPtr& http) {
  TRY(Wanted wanted, wanted_of(*http));
  TRY(json::Value body, http->body());
  TRY(GroupQuery q, group_query(body));
  Query query{.tenant = http->tenant(), .model = wanted.model->first, .version = wanted.model->second};
  if (const json::Value* c = body.find("condition"); c && !c->is_null()) {
    TRY(query.condition, http->service().condition(query.tenant, query.model, query.version, *c, true));
  }
  TRY(query.at, http->time("pointInTime"));
  TRY(ModelPtr model, http->service().model(query.tenant, query.model, query.version));
  if (!http->service().background().add([http, query, q, model] { http->reply(run_grouped(*http, query, q, *model)); }))
    return fail(Code::exhausted, "TOO_MANY_SEARCHES", "too many searches wait already: retry later");
  return {};
}

}  // namespace

void add_stats_routes(Rows& rows) {
  rows.now("GET", "/entity/stats", of_all, "How many entities each model has.");
  rows.now("GET", "/entity/stats/{name}/{version}", of_one, "How many entities a model has.");
  rows.now("GET", "/entity/stats/states", by_state, "How many entities are in each state.");
  rows.now("GET", "/entity/stats/states/{name}/{version}", by_state, "How many entities of a model are in each state.");
  rows.later("POST", "/entity/stats/{name}/{version}/query", grouped, "Counts and figures by groups: groupBy, aggregate, condition.");
}

}  // namespace pawl::entities

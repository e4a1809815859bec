#include <fmt/format.h>

#include <cmath>

#include "condition/operators.h"
#include "faces/entities/http.h"
#include "json/text.h"

// Counts, and figures over number fields, of the entities that a condition matches, by field values.

namespace pawl::entities {

namespace {

// Groups of one query; more is a report, not a statistic.
constexpr size_t kGroups = 10'000;
// Entries of each list in a query.
constexpr size_t kEntries = 64;
constexpr std::string_view kState = "state";

// What is known of the numbers of one field in one group. The mean moves with each number (Welford), so
// that numbers which differ little from a large mean keep their deviation.
struct Tally {
  uint64_t count = 0;
  double sum = 0, least = 0, most = 0, mean = 0, spread = 0;
  void take(double v) {
    least = count ? std::min(least, v) : v;
    most = count ? std::max(most, v) : v;
    sum += v;
    ++count;
    double off = v - mean;
    mean += off / static_cast<double>(count);
    spread += off * (v - mean);
  }
};

struct Operation {
  std::string_view name;
  json::Value (*of)(const Tally& t);
};
constexpr Operation kOperations[] = {
    {"sum", [](const Tally& t) { return t.count ? json::Value(t.sum) : json::Value(); }},
    {"avg", [](const Tally& t) { return t.count ? json::Value(t.sum / static_cast<double>(t.count)) : json::Value(); }},
    {"min", [](const Tally& t) { return t.count ? json::Value(t.least) : json::Value(); }},
    {"max", [](const Tally& t) { return t.count ? json::Value(t.most) : json::Value(); }},
    {"stdev", [](const Tally& t) { return t.count > 1 ? json::Value(std::sqrt(t.spread / static_cast<double>(t.count - 1))) : json::Value(); }},
};

struct Figure {
  const Operation* operation = nullptr;
  std::string field;
  std::string alias;
  condition::Path path;
};
struct GroupBy {
  std::string name;
  condition::Path path;
};
struct Grouping {
  std::vector<GroupBy> by;
  std::vector<Figure> figures;
  size_t limit = kGroups;
};
struct Group {
  json::Array key;
  uint64_t count = 0;
  std::vector<Tally> tallies;
};

std::unexpected<Error> refuse(std::string code, std::string message) { return fail(Code::invalid, std::move(code), std::move(message)); }

Result<condition::Path> scalar(const json::Value* given, std::string_view code) {
  if (!given || !given->is_string() || given->string().empty()) return refuse(std::string(code), "each field must be a path such as \"$.k\"");
  if (given->string().find('[') != std::string::npos) return refuse(std::string(code), fmt::format("'{}' is a list or a place in one; name a single field", given->string()));
  return condition::Path(given->string());
}

Result<const json::Array*> list_of(const json::Value& body, std::string_view name) {
  static const json::Array none;
  const json::Value* list = body.find(name);
  if (!list || list->is_null()) return &none;
  if (!list->is_array() || list->array().size() > kEntries) return refuse("MALFORMED_REQUEST", fmt::format("'{}' must be an array of at most {} entries", name, kEntries));
  return &list->array();
}

Result<std::vector<GroupBy>> group_by(const json::Value& body) {
  TRY(const json::Array* list, list_of(body, "groupBy"));
  if (list->empty()) return refuse("MISSING_GROUP_BY", "'groupBy' must name at least one field, or \"state\"");
  std::vector<GroupBy> out;
  for (const json::Value& entry : *list) {
    TRY(condition::Path path, scalar(&entry, "INVALID_GROUP_BY_PATH"));
    // "$.k" and "k" are one field; "state" is none, unlike "$.state".
    for (const GroupBy& g : out)
      if (g.path.name() == path.name() && (g.name == kState) == (entry.string() == kState)) return refuse("DUPLICATE_GROUP_BY", fmt::format("'{}' is named twice", entry.string()));
    out.push_back({entry.string(), std::move(path)});
  }
  return out;
}

Result<Figure> figure_of(const json::Value& given) {
  std::string_view op = given.string_or("op");
  const Operation* operation = nullptr;
  for (const Operation& o : kOperations)
    if (o.name == op) operation = &o;
  if (!operation) return refuse("INVALID_AGGREGATION_OP", fmt::format("'{}' is none of sum, avg, min, max, stdev", op));
  TRY(condition::Path path, scalar(given.find("field"), "INVALID_AGGREGATION_FIELD"));
  std::string alias(given.string_or("as"));
  if (alias.empty()) alias = fmt::format("{}_{}", op, path.name());
  return Figure{operation, path.name(), std::move(alias), std::move(path)};
}

Result<std::vector<Figure>> figures_of(const json::Value& body) {
  TRY(const json::Array* list, list_of(body, "aggregations"));
  std::vector<Figure> out;
  for (const json::Value& entry : *list) {
    TRY(Figure figure, figure_of(entry));
    bool twice = false;
    for (const Figure& f : out) {
      twice = twice || (f.operation == figure.operation && f.field == figure.field);
      if (!twice && f.alias == figure.alias) return refuse("DUPLICATE_AGGREGATION_ALIAS", fmt::format("two aggregations are called '{}'", f.alias));
    }
    if (!twice) out.push_back(std::move(figure));
  }
  return out;
}

Result<Grouping> grouping_of(const json::Value& body) {
  constexpr std::string_view known[] = {"groupBy", "aggregations", "condition", "pointInTime", "limit"};
  if (!body.is_object()) return refuse("MALFORMED_REQUEST", "the body must be an object with 'groupBy'");
  for (const json::Member& m : body.object())
    if (std::find(std::begin(known), std::end(known), m.name) == std::end(known)) return refuse("MALFORMED_REQUEST", fmt::format("unknown field '{}'", m.name));
  Grouping g;
  TRY(g.by, group_by(body));
  TRY(g.figures, figures_of(body));
  if (const json::Value* limit = body.find("limit"); limit && !limit->is_null()) {
    int64_t n = limit->as_int64().value_or(0);
    if (n < 1 || n > static_cast<int64_t>(kGroups)) return refuse("INVALID_LIMIT", fmt::format("limit must be from 1 to {}", kGroups));
    g.limit = static_cast<size_t>(n);
  }
  return g;
}

// Numbers and booleans by their text; what is no scalar counts as missing.
json::Value key_part(const GroupBy& by, const EntityView& e) {
  if (by.name == kState) return e.state.empty() ? json::Value() : json::Value(e.state);
  condition::Field f = by.path.find(e.data);
  std::string room;
  if (f.is_null() || f.kind == condition::Field::array || f.kind == condition::Field::object) return nullptr;
  return condition::text_of(f, room);
}

void take(Group& g, const Grouping& grouping, const EntityView& e) {
  ++g.count;
  g.tallies.resize(grouping.figures.size());
  for (size_t i = 0; i < grouping.figures.size(); ++i) {
    condition::Field f = grouping.figures[i].path.find(e.data);
    double v;
    if (f.kind == condition::Field::number && condition::read_number(f.text, v) && std::isfinite(v)) g.tallies[i].take(v);
  }
}

json::Value show(const Group& g, const Grouping& grouping) {
  json::Array key;
  for (size_t i = 0; i < grouping.by.size(); ++i) key.push_back(json::object({{"path", grouping.by[i].name}, {"value", g.key[i]}}));
  json::Object out;
  out.add("groupKey", std::move(key));
  out.add("count", g.count);
  if (grouping.figures.empty()) return out;
  json::Object figures;
  for (size_t i = 0; i < grouping.figures.size(); ++i) figures.add(grouping.figures[i].alias, grouping.figures[i].operation->of(g.tallies[i]));
  out.add("aggregations", std::move(figures));
  return out;
}

// The largest first; those of a size by their keys, part by part, null before any text.
bool comes_before(const Group* a, const Group* b) {
  if (a->count != b->count) return a->count > b->count;
  return std::lexicographical_compare(a->key.begin(), a->key.end(), b->key.begin(), b->key.end(), [](const json::Value& x, const json::Value& y) {
    if (x.is_null() || y.is_null()) return x.is_null() && !y.is_null();
    return x.string() < y.string();
  });
}

Result<Bytes> run(Http& http, const Query& query, const Grouping& grouping, const Model& model) {
  std::map<std::string, Group> groups;
  TRY_OK(search(http.service().door().look(), query, &model, [&](const EntityView& e) {
    json::Array key;
    for (const GroupBy& by : grouping.by) key.push_back(key_part(by, e));
    Group& g = groups[json::print(key)];
    g.key = std::move(key);
    take(g, grouping, e);
    return groups.size() <= kGroups;
  }));
  if (groups.size() > kGroups) return fail(Code::unprocessable, "GROUP_CARDINALITY_EXCEEDED", fmt::format("the query makes more than {} groups; group by a field with fewer values", kGroups));
  std::vector<const Group*> largest;
  for (const auto& [name, g] : groups) largest.push_back(&g);
  std::sort(largest.begin(), largest.end(), comes_before);
  if (largest.size() > grouping.limit) largest.resize(grouping.limit);
  json::Array out;
  for (const Group* g : largest) out.push_back(show(*g, grouping));
  return json::print(out);
}

Result<std::optional<Time>> time_in(const json::Value& body) {
  const json::Value* given = body.find("pointInTime");
  if (!given || given->is_null()) return std::optional<Time>();
  auto time = parse_rfc3339(given->is_string() ? given->string() : "");
  if (!time) return refuse("MALFORMED_REQUEST", "'pointInTime' must be an RFC 3339 time such as 2026-11-15T13:32:00Z");
  return std::optional(*time);
}

Result<void> grouped(const HttpPtr& http) {
  TRY(int32_t version, http->version(1));
  TRY(ModelPtr model, http->service().model(http->tenant(), http->param(0), version));
  if (!model) return fail(model_not_found(http->param(0), version));
  TRY(json::Value body, http->body());
  TRY(Grouping grouping, grouping_of(body));
  Query query{.tenant = http->tenant(), .model = model->name, .version = version};
  if (const json::Value* c = body.find("condition"); c && !c->is_null()) {
    TRY(query.condition, http->service().condition(query.tenant, query.model, query.version, *c, true));
    if (query.condition->function()) return bad_request("a function condition is for workflows; a statistic cannot ask compute members");
  }
  TRY(query.at, http->time("pointInTime"));
  if (!query.at) {
    TRY(query.at, time_in(body));
  }
  if (!http->service().background().add([http, query, grouping, model] { http->reply(run(*http, query, grouping, *model)); }))
    return fail(Code::exhausted, "TOO_MANY_SEARCHES", "too many searches wait already: retry later");
  return {};
}

}  // namespace

void add_group_routes(Rows& rows) {
  rows.later("POST", "/entity/stats/{name}/{version}/query", grouped, "Counts and figures by groups: groupBy, aggregations, condition, pointInTime, limit.");
}

}  // namespace pawl::entities

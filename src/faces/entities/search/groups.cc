#include "faces/entities/search/groups.h"

#include <fmt/format.h>

#include <cmath>

#include "condition/operators.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

// Groups of one query; more is a report, not a statistic.
constexpr size_t kGroups = 10'000;
// Entries of each list in a query.
constexpr size_t kEntries = 64;
constexpr std::string_view kState = "state";

constexpr Operation kOperations[] = {
    {"sum", [](const Tally& t) { return t.count ? json::Value(t.sum) : json::Value(); }},
    {"avg",
     [](const Tally& t) {
       return t.count ? json::Value(t.sum / static_cast<double>(t.count)) : json::Value();
     }},
    {"min", [](const Tally& t) { return t.count ? json::Value(t.least) : json::Value(); }},
    {"max", [](const Tally& t) { return t.count ? json::Value(t.max) : json::Value(); }},
    {"stdev",
     [](const Tally& t) {
       return t.count > 1 ? json::Value(std::sqrt(t.spread / static_cast<double>(t.count - 1)))
                          : json::Value();
     }},
};

std::unexpected<Error> refuse(std::string code, std::string message) {
  return fail(Code::invalid, std::move(code), std::move(message));
}

Result<condition::Path> scalar(const json::Value* given, std::string_view code) {
  if (!given || !given->is_string() || given->string().empty())
    return refuse(std::string(code), "each field must be a path such as \"$.k\"");
  if (given->string().find('[') != std::string::npos)
    return refuse(
        std::string(code),
        fmt::format("'{}' is a list or a place in one; name a single field", given->string()));
  return condition::Path(given->string());
}

Result<const json::Array*> list_of(const json::Value& body, std::string_view name) {
  static const json::Array none;
  const json::Value* list = body.find(name);
  if (!list || list->is_null()) return &none;
  if (!list->is_array() || list->array().size() > kEntries)
    return refuse("MALFORMED_REQUEST",
                  fmt::format("'{}' must be an array of at most {} entries", name, kEntries));
  return &list->array();
}

Result<std::vector<GroupBy>> group_by(const json::Value& body) {
  TRY(const json::Array* list, list_of(body, "groupBy"));
  if (list->empty())
    return refuse("MISSING_GROUP_BY", "'groupBy' must name at least one field, or \"state\"");
  std::vector<GroupBy> out;
  for (const json::Value& entry : *list) {
    TRY(condition::Path path, scalar(&entry, "INVALID_GROUP_BY_PATH"));
    // "$.k" and "k" are one field; "state" is none, unlike "$.state".
    for (const GroupBy& g : out)
      if (g.path.name() == path.name() && (g.name == kState) == (entry.string() == kState))
        return refuse("DUPLICATE_GROUP_BY", fmt::format("'{}' is named twice", entry.string()));
    out.push_back({entry.string(), std::move(path)});
  }
  return out;
}

Result<Figure> figure_of(const json::Value& given) {
  std::string_view op = given.string_or("op");
  const Operation* operation = nullptr;
  for (const Operation& o : kOperations)
    if (o.name == op) operation = &o;
  if (!operation)
    return refuse("INVALID_AGGREGATION_OP",
                  fmt::format("'{}' is none of sum, avg, min, max, stdev", op));
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
      if (!twice && f.alias == figure.alias)
        return refuse("DUPLICATE_AGGREGATION_ALIAS",
                      fmt::format("two aggregations are called '{}'", f.alias));
    }
    if (!twice) out.push_back(std::move(figure));
  }
  return out;
}

// Numbers and booleans by their text; what is no scalar counts as missing.
json::Value key_part(const GroupBy& by, const EntityView& e) {
  if (by.name == kState) return e.state.empty() ? json::Value() : json::Value(e.state);
  condition::Field f = by.path.find(e.data);
  std::string room;
  if (f.is_null() || f.kind == condition::Field::array || f.kind == condition::Field::object)
    return nullptr;
  return condition::text_of(f, room);
}

}  // namespace

void Tally::take(double v) {
  least = count ? std::min(least, v) : v;
  max = count ? std::max(max, v) : v;
  sum += v;
  ++count;
  double off = v - mean;
  mean += off / static_cast<double>(count);
  spread += off * (v - mean);
}

Result<Grouping> parse_grouping(const json::Value& query) {
  constexpr std::string_view known[] = {"groupBy", "aggregations", "condition", "pointInTime",
                                        "limit"};
  if (!query.is_object())
    return refuse("MALFORMED_REQUEST", "the body must be an object with 'groupBy'");
  for (const json::Member& m : query.object())
    if (std::find(std::begin(known), std::end(known), m.name) == std::end(known))
      return refuse("MALFORMED_REQUEST", fmt::format("unknown field '{}'", m.name));
  Grouping g;
  g.limit = kGroups;
  TRY(g.by, group_by(query));
  TRY(g.figures, figures_of(query));
  if (const json::Value* limit = query.find("limit"); limit && !limit->is_null()) {
    int64_t n = limit->as_int64().value_or(0);
    if (n < 1 || n > static_cast<int64_t>(kGroups))
      return refuse("INVALID_LIMIT", fmt::format("limit must be from 1 to {}", kGroups));
    g.limit = static_cast<size_t>(n);
  }
  return g;
}

bool Groups::take(const EntityView& e) {
  json::Array key;
  for (const GroupBy& by : grouping_.by)
    key.push_back(key_part(by, e));
  Group& g = groups_[json::print(key)];
  g.key = std::move(key);
  ++g.count;
  g.tallies.resize(grouping_.figures.size());
  for (size_t i = 0; i < grouping_.figures.size(); ++i) {
    condition::Field f = grouping_.figures[i].path.find(e.data);
    double v;
    if (f.kind == condition::Field::number && condition::read_number(f.text, v) && std::isfinite(v))
      g.tallies[i].take(v);
  }
  return groups_.size() <= kGroups;
}

json::Value Groups::show(const Group& g) const {
  json::Array key;
  for (size_t i = 0; i < grouping_.by.size(); ++i)
    key.push_back(json::object({{"path", grouping_.by[i].name}, {"value", g.key[i]}}));
  json::Object out;
  out.add("groupKey", std::move(key));
  out.add("count", g.count);
  if (grouping_.figures.empty()) return out;
  json::Object figures;
  for (size_t i = 0; i < grouping_.figures.size(); ++i)
    figures.add(grouping_.figures[i].alias, grouping_.figures[i].operation->of(g.tallies[i]));
  out.add("aggregations", std::move(figures));
  return out;
}

// Those of a size by their keys, part by part, null before any text.
bool Groups::comes_before(const Group* a, const Group* b) {
  if (a->count != b->count) return a->count > b->count;
  return std::lexicographical_compare(a->key.begin(), a->key.end(), b->key.begin(), b->key.end(),
                                      [](const json::Value& x, const json::Value& y) {
                                        if (x.is_null() || y.is_null())
                                          return x.is_null() && !y.is_null();
                                        return x.string() < y.string();
                                      });
}

Result<Bytes> Groups::answer() const {
  if (groups_.size() > kGroups)
    return fail(
        Code::unprocessable, "GROUP_CARDINALITY_EXCEEDED",
        fmt::format("the query makes more than {} groups; group by a field with fewer values",
                    kGroups));
  std::vector<const Group*> largest;
  for (const auto& [name, g] : groups_)
    largest.push_back(&g);
  std::sort(largest.begin(), largest.end(), comes_before);
  if (largest.size() > grouping_.limit) largest.resize(grouping_.limit);
  json::Array out;
  for (const Group* g : largest)
    out.push_back(show(*g));
  return json::print(out);
}

}  // namespace pawl::entities

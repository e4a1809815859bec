#include "faces/entities/search/groups.h"

#include <fmt/format.h>

#include <cmath>

#include "condition/operators.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

// Groups in one answer.
constexpr size_t kMaxGroups = static_cast<size_t>(*kGrouping["limit"].max);
// Bytes of the values that the groups have: a field may hold a text of megabytes.
constexpr size_t kMaxKeyBytes = 16 * 1024 * 1024;
// Entries in each list of a query.
constexpr size_t kMaxListEntries = 64;
constexpr std::string_view kState = "state";

constexpr AggregationOp kAggregationOps[] = {
    {"sum", [](const Tally& t) { return t.count ? json::Value(t.sum) : json::Value(); }},
    {"avg",
     [](const Tally& t) {
       return t.count ? json::Value(t.sum / static_cast<double>(t.count)) : json::Value();
     }},
    {"min", [](const Tally& t) { return t.count ? json::Value(t.min) : json::Value(); }},
    {"max", [](const Tally& t) { return t.count ? json::Value(t.max) : json::Value(); }},
    {"stdev",
     [](const Tally& t) {
       return t.count > 1 ? json::Value(std::sqrt(t.squares / static_cast<double>(t.count - 1)))
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
        fmt::format("'{}' is an array or an element of one; name a single field", given->string()));
  return condition::Path(given->string());
}

Result<const json::Array*> list_of(const json::Value& body, std::string_view name) {
  static const json::Array none;
  const json::Value* list = body.find(name);
  if (!list || list->is_null()) return &none;
  if (!list->is_array() || list->array().size() > kMaxListEntries)
    return refuse("MALFORMED_REQUEST", fmt::format("'{}' must be an array of at most {} entries",
                                                   name, kMaxListEntries));
  return &list->array();
}

Result<std::vector<GroupBy>> group_by(const json::Value& body) {
  TRY(const json::Array* list, list_of(body, kGrouping["groupBy"]));
  if (list->empty())
    return refuse("MISSING_GROUP_BY", "'groupBy' must name at least one field, or \"state\"");
  std::vector<GroupBy> out;
  for (const json::Value& entry : *list) {
    TRY(condition::Path path, scalar(&entry, "INVALID_GROUP_BY_PATH"));
    // "$.k" and "k" are the same field. "state" is the entity's state, "$.state" a field.
    for (const GroupBy& g : out)
      if (g.path.name() == path.name() && (g.name == kState) == (entry.string() == kState))
        return refuse("DUPLICATE_GROUP_BY", fmt::format("'{}' is named twice", entry.string()));
    out.push_back({entry.string(), std::move(path)});
  }
  return out;
}

Result<Aggregation> aggregation_of(const json::Value& given) {
  std::string_view op = given.string_or(kAggregation["op"]);
  const AggregationOp* operation = nullptr;
  for (const AggregationOp& o : kAggregationOps)
    if (o.name == op) operation = &o;
  if (!operation)
    return refuse("INVALID_AGGREGATION_OP",
                  fmt::format("'{}' is none of sum, avg, min, max, stdev", op));
  TRY(condition::Path path, scalar(given.find(kAggregation["field"]), "INVALID_AGGREGATION_FIELD"));
  std::string alias(given.string_or(kAggregation["as"]));
  if (alias.empty()) alias = fmt::format("{}_{}", op, path.name());
  return Aggregation{operation, path.name(), std::move(alias), std::move(path)};
}

Result<std::vector<Aggregation>> aggregations_of(const json::Value& body) {
  TRY(const json::Array* list, list_of(body, kGrouping["aggregations"]));
  std::vector<Aggregation> out;
  for (const json::Value& entry : *list) {
    TRY(Aggregation aggregation, aggregation_of(entry));
    bool twice = false;
    for (const Aggregation& f : out) {
      twice = twice || (f.operation == aggregation.operation && f.field == aggregation.field);
      if (!twice && f.alias == aggregation.alias)
        return refuse("DUPLICATE_AGGREGATION_ALIAS",
                      fmt::format("two aggregations are called '{}'", f.alias));
    }
    if (!twice) out.push_back(std::move(aggregation));
  }
  return out;
}

// Numbers and booleans are grouped by their text; objects and arrays count as missing.
json::Value key_part(const GroupBy& by, const EntityView& e) {
  if (by.name == kState) return e.state.empty() ? json::Value() : json::Value(e.state);
  condition::Field f = by.path.find(e.data);
  std::string room;
  if (f.is_null() || f.kind == condition::Field::array || f.kind == condition::Field::object)
    return nullptr;
  return condition::text_of(f, room);
}

}  // namespace

void Tally::add(double v) {
  min = count ? std::min(min, v) : v;
  max = count ? std::max(max, v) : v;
  sum += v;
  ++count;
  const double difference = v - mean;
  mean += difference / static_cast<double>(count);
  squares += difference * (v - mean);
}

Result<Grouping> parse_grouping(const json::Value& query) {
  if (!query.is_object())
    return refuse("MALFORMED_REQUEST", "the body must be an object with 'groupBy'");
  for (const json::Member& m : query.object())
    if (!kGrouping.has(m.name))
      return refuse("MALFORMED_REQUEST", fmt::format("unknown field '{}'", m.name));
  Grouping g;
  g.limit = kMaxGroups;
  TRY(g.by, group_by(query));
  TRY(g.aggregations, aggregations_of(query));
  if (const json::Value* limit = query.find(kGrouping["limit"]); limit && !limit->is_null()) {
    int64_t n = limit->as_int64().value_or(0);
    if (n < 1 || n > static_cast<int64_t>(kMaxGroups))
      return refuse("INVALID_LIMIT", fmt::format("limit must be from 1 to {}", kMaxGroups));
    g.limit = static_cast<size_t>(n);
  }
  return g;
}

bool Groups::add(const EntityView& e) {
  json::Array key;
  for (const GroupBy& by : grouping_.by)
    key.push_back(key_part(by, e));
  auto [place, is_new] = groups_.try_emplace(json::print(key));
  if (is_new) key_bytes_ += place->first.size();
  Group& g = place->second;
  g.key = std::move(key);
  ++g.count;
  g.tallies.resize(grouping_.aggregations.size());
  for (size_t i = 0; i < grouping_.aggregations.size(); ++i) {
    condition::Field f = grouping_.aggregations[i].path.find(e.data);
    double v;
    if (f.kind == condition::Field::number && condition::read_number(f.text, v) && std::isfinite(v))
      g.tallies[i].add(v);
  }
  return !full();
}

bool Groups::full() const { return groups_.size() > kMaxGroups || key_bytes_ > kMaxKeyBytes; }

json::Value Groups::show(const Group& g) const {
  json::Array key;
  for (size_t i = 0; i < grouping_.by.size(); ++i)
    key.push_back(json::object({{"path", grouping_.by[i].name}, {"value", g.key[i]}}));
  json::Object out;
  out.add("groupKey", std::move(key));
  out.add("count", g.count);
  if (grouping_.aggregations.empty()) return out;
  json::Object aggregations;
  for (size_t i = 0; i < grouping_.aggregations.size(); ++i)
    aggregations.add(grouping_.aggregations[i].alias,
                     grouping_.aggregations[i].operation->of(g.tallies[i]));
  out.add("aggregations", std::move(aggregations));
  return out;
}

// Larger groups first. Groups of one size are sorted by their keys, part by part, null first.
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
  if (full())
    return fail(Code::unprocessable, "GROUP_CARDINALITY_EXCEEDED",
                fmt::format("the query makes more than {} groups, or more than {} bytes of values; "
                            "group by a field with fewer and shorter values",
                            kMaxGroups, kMaxKeyBytes));
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

#pragma once
// Groups entities by the values of their fields; counts each group and aggregates number fields.

#include <map>

#include "condition/path.h"
#include "faces/entities/store/entity.h"
#include "json/value.h"
#include "wire/member.h"

namespace pawl::entities {

// The body of a grouped statistic.
inline constexpr wire::RequestShape kAggregation{
    "AggregationRequest",
    {wire::row::choice("op", {"sum", "avg", "min", "max", "stdev"}).required(),
     wire::row::text("field", "The path of a number.").required().example(R"("$.amount")"),
     wire::row::text("as", "The name of the result; none: op_field.").example(R"("total")")}};
inline constexpr wire::RequestShape kGrouping{
    "GroupingRequest",
    {wire::row::texts("groupBy", "Paths of fields, or state.")
         .required()
         .range(1, std::nullopt)
         .example(R"(["state"])"),
     wire::row::list("aggregations", "What to compute for each group.", kAggregation),
     wire::row::document("condition", "Only entities that match.", "EntityCondition"),
     wire::row::time("pointInTime", "As it was at this time; none: now.").or_null(),
     wire::row::integer("limit", "How many groups, the largest first.")
         .range(1, 10'000)
         .or_null()}};

// Statistics of one number field in one group. The mean is updated with each number (Welford's
// method), which keeps the deviation of numbers that differ little from a large mean.
struct Tally {
  uint64_t count = 0;
  double sum = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  double squares = 0;  // sum of the squared differences from the mean
  void add(double v);
};

struct AggregationOp {
  std::string_view name;
  json::Value (*of)(const Tally& t);
};
struct Aggregation {
  const AggregationOp* operation = nullptr;
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
  std::vector<Aggregation> aggregations;
  size_t limit = 0;
  size_t lookups() const { return by.size() + aggregations.size(); }  // fields of each entity
};
// Reads "groupBy", "aggregations" and "limit" of a query and refuses unknown members.
Result<Grouping> parse_grouping(const json::Value& query);

class Groups {
 public:
  explicit Groups(const Grouping& grouping) : grouping_(grouping) {}
  // Returns false when there are too many groups, or when their keys are too large.
  bool add(const EntityView& entity);
  // A JSON array, the largest group first. Fails with GROUP_CARDINALITY_EXCEEDED.
  Result<Bytes> answer() const;

 private:
  struct Group {
    json::Array key;
    uint64_t count = 0;
    std::vector<Tally> tallies;
  };
  static bool comes_before(const Group* a, const Group* b);
  json::Value show(const Group& group) const;

  const Grouping& grouping_;
  bool full() const;

  std::map<std::string, Group> groups_;
  size_t key_bytes_ = 0;
};

}  // namespace pawl::entities

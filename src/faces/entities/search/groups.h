#pragma once
// Counts, and figures over number fields, of entities by the values of their fields.

#include <map>

#include "condition/path.h"
#include "faces/entities/store/entity.h"
#include "json/value.h"

namespace pawl::entities {

// What is known of the numbers of one field in one group. The mean moves with each number
// (Welford), so that numbers which differ little from a large mean keep their deviation.
struct Tally {
  uint64_t count = 0;
  double sum = 0, least = 0, max = 0, mean = 0, spread = 0;
  void take(double v);
};

struct Operation {
  std::string_view name;
  json::Value (*of)(const Tally& t);
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
  size_t limit = 0;
};
// "groupBy", "aggregations" and "limit" of a query; of the others only that nothing else is there.
Result<Grouping> parse_grouping(const json::Value& query);

class Groups {
 public:
  explicit Groups(const Grouping& grouping) : grouping_(grouping) {}
  bool take(const EntityView& entity);  // false: there are too many groups
  // An array, the largest first. Fails GROUP_CARDINALITY_EXCEEDED.
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
  std::map<std::string, Group> groups_;
};

}  // namespace pawl::entities

#pragma once
// Search over durable entities of one model: by an index where one helps, else by reading them all.
// Either way the condition has the last word on each.

#include <functional>
#include <optional>

#include "condition/condition.h"
#include "faces/entities/model/model.h"
#include "faces/entities/store/entity.h"
#include "kernel/access.h"

namespace pawl::entities {

struct SortKey {
  std::optional<condition::Path> path;  // a field of the document, else a fact of its life
  std::string field;
  bool descending = false;
};
// "$.n", "n:desc", "-state", "@state:asc", several parted by commas. `model` may be null.
Result<std::vector<SortKey>> parse_sort(const std::vector<std::string>& given, const Model* model);

void sort_entities(std::vector<Entity>& found,
                   const std::vector<SortKey>& keys);  // those that are equal by id

struct Query {
  std::string tenant;
  std::string model;
  int32_t version = 0;
  std::shared_ptr<const condition::Condition>
      condition{};  // null: all; shared with the thread that runs it
  std::optional<Time> at{};
  std::optional<Seq> seq{};  // instead of a time
  size_t limit = ~size_t{0};
  size_t skip = 0;
  std::vector<SortKey> sort{};
  std::vector<std::string> sort_text{};  // the same as it was given, for whoever parses it again
  bool with_model = false;               // inside a transaction: the envelopes name it
  std::string
      asked{};  // of a job: a digest of the request, so that another one is known for another
};

// What the search did, for explain.
struct Plan {
  std::string index;  // path; empty: all entities of the model were read
  uint64_t rows_read = 0;
  uint64_t matched = 0;
};

// The index that would serve the condition; null when none does.
const condition::Node* indexed_node(const condition::Condition& condition, const Model& model);

// Calls visit for each match until it returns false. Not sorted: in the order of ids, or in that of
// the index which served.
using VisitEntity = std::function<bool(const EntityView&)>;
Result<Plan> search(const ReadSnapshot& snapshot, const Query& query, const Model* model,
                    const VisitEntity& visit);

// The checks that a search, unlike a criterion, makes against the model: CONDITION_TYPE_MISMATCH,
// INVALID_FIELD_PATH.
Result<void> check_condition(const condition::Condition& condition, const Model& model,
                             bool check_types);

}  // namespace pawl::entities

#pragma once
// Searches the durable entities of one model: with an index when one helps, else by reading all of
// them. Either way the condition is evaluated on each entity.

#include <functional>
#include <optional>

#include "condition/condition.h"
#include "faces/entities/model/model.h"
#include "faces/entities/store/entity.h"
#include "kernel/access.h"

namespace pawl::entities {

struct SortKey {
  std::optional<condition::Path> path;  // a field of the document; empty: a metadata field
  std::string field;
  bool descending = false;
};
// Reads "$.n", "n:desc", "-state", "@state:asc", or several separated by commas. `model` may be
// null.
Result<std::vector<SortKey>> parse_sort(const std::vector<std::string>& given, const Model* model);

// Entities with equal keys are sorted by id.
void sort_entities(std::vector<Entity>& found, const std::vector<SortKey>& keys);

// The first `enough` entities in the order of the keys. It holds about twice as many while it takes
// them, whatever their number.
class SortedMatches {
 public:
  // `keys` must outlive it.
  SortedMatches(const std::vector<SortKey>& keys, size_t enough) : keys_(keys), enough_(enough) {}
  void add(const EntityView& e);
  // Empties it.
  std::vector<Entity> take();
  size_t held() const { return found_.size(); }

 private:
  // Beyond `enough`, at least this many are sorted at once.
  static constexpr size_t kSpare = 100;
  const std::vector<SortKey>& keys_;
  const size_t enough_;
  std::vector<Entity> found_;
};

// The search reads more than its query allows.
inline constexpr Reason kSearchTooLong{"SEARCH_TOO_LONG"};
// The search job has ended before.
inline constexpr Reason kSearchJobOver{"SEARCH_JOB_ALREADY_TERMINAL"};

// Work of a search inside a turn, or in a thread that has other requests: bytes of documents, each
// counted once for each condition. A turn fails with kSearchTooLong; the other search goes on in
// the background.
inline constexpr uint64_t kMaxWorkInTurn = uint64_t{1} << 30;
inline constexpr uint64_t kMaxInlineWork = uint64_t{8} << 20;
// Work of reading one row, beside its bytes.
inline constexpr uint64_t kRowWork = 512;
// `lookups` are the fields that are looked up besides, to sort or to group.
uint64_t work_of(const condition::Condition* condition, const EntityView& e, size_t lookups);
std::unexpected<Error> too_much_work();
// The result is larger than limits::kWholeResultBytes and cannot be streamed.
std::unexpected<Error> result_too_large();

struct Query {
  std::string tenant;
  std::string model;
  int32_t version = 0;
  // Null: all entities. Shared with the thread that runs the query.
  std::shared_ptr<const condition::Condition> condition{};
  std::optional<Time> at{};
  std::optional<Seq> seq{};  // used instead of a time
  size_t limit = ~size_t{0};
  size_t skip = 0;
  std::vector<SortKey> sort{};
  std::vector<std::string> sort_text{};  // `sort` as it was given: a verb parses it again
  bool with_model = false;               // inside a transaction: the envelopes name the model
  // For a search job: a digest of the request. A repeated Idempotency-Key must have the same one.
  std::string request_digest{};
  // The search ends with kSearchTooLong when it needs more work.
  uint64_t max_work = ~uint64_t{0};
  // Asked now and then while the search runs; an error ends it. Empty: nothing ends it.
  std::function<Result<void>()> proceed{};
  // Told the bytes of each match before it is visited; an error ends the search. Empty: they are
  // not counted.
  std::function<Result<void>(size_t bytes)> hold{};
};

// The plan and the counts of a search, shown when the caller asks for `explain`.
struct Plan {
  std::string index;  // the path of the index; empty: all entities of the model were read
  uint64_t rows_read = 0;
  uint64_t matched = 0;
};

// The part of the condition that an index can answer; null when there is none.
const condition::Node* indexed_node(const condition::Condition& condition, const Model& model);

// Calls `visit` for each match until it returns false. Without sort keys the order is that of the
// ids, or of the index that was used.
using VisitEntity = std::function<bool(const EntityView&)>;
Result<Plan> search(const ReadSnapshot& snapshot, const Query& query, const Model* model,
                    const VisitEntity& visit);

// Checks a search condition against the model: CONDITION_TYPE_MISMATCH, INVALID_FIELD_PATH. The
// criteria of workflows are not checked like that.
Result<void> check_condition(const condition::Condition& condition, const Model& model,
                             bool check_types);

}  // namespace pawl::entities

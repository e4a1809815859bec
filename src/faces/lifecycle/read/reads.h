#pragma once
// Reads durable state: types, instances, lists, history, parents and children. A read never waits
// for the kernel. Both the routes and the library read through this class.

#include "faces/lifecycle/read/views.h"
#include "faces/lifecycle/rule/substitute.h"
#include "faces/lifecycle/run/stored_instance.h"
#include "faces/lifecycle/type/values.h"
#include "kernel/access.h"

namespace pawl::lifecycle {

// An instance that was read.
struct FoundInstance {
  std::shared_ptr<const void> keep;  // owns the bytes that `stored` points into
  std::string id;
  Seq version = 0;
  StoredInstance stored;
};

// One page of a list.
struct InstanceList {
  std::vector<FoundInstance> items;
  size_t skipped = 0;  // instances that cannot be decoded
  std::string cursor;  // of the next page; empty on the last one
};

struct TypedInstance {
  WorkflowTypePtr type;
  FoundInstance found;
};

class Reads {
 public:
  explicit Reads(const KernelAccess& kernel) : kernel_(kernel) {}

  Result<WorkflowTypePtr> type(std::string_view tenant, std::string_view name) const;
  Result<std::vector<WorkflowTypePtr>> types(std::string_view tenant) const;  // sorted by name
  Result<FoundInstance> get(std::string_view tenant, std::string_view type,
                            std::string_view id) const;

  // Instances in creation order. Filters apply first, then the offset, then the limit. The scan
  // uses an index of a matched field, or else the rows of the phase, or else all rows of the type.
  Result<InstanceList> list(std::string_view tenant, const WorkflowType& type,
                            const any_query& query) const;

  // Oldest first. Also for an instance that was removed; entity_not_found when it never existed.
  Result<history_log> history(std::string_view tenant, const WorkflowType& type,
                              std::string_view id) const;

  // An empty `parent_id` finds the instances without a parent. `skipped` grows by the number of
  // instances that cannot be decoded.
  Result<std::vector<TypedInstance>> children(std::string_view tenant, std::string_view parent_id,
                                              size_t& skipped) const;
  // Parent first, root last. When a parent does not exist, the list ends there with a warning.
  Result<std::vector<TypedInstance>> ancestors(std::string_view tenant, std::string_view id,
                                               std::string& warning) const;
  // The one instance of this id in any type; ambiguous_id when several types have one.
  Result<TypedInstance> lookup(std::string_view tenant, std::string_view id) const;
  // Unlike in rules, a variable that cannot be resolved stays in the text without an error.
  Result<std::string> substitute(std::string_view tenant, std::string_view id,
                                 std::string_view text, Variables variables) const;

  const KernelAccess& kernel() const { return kernel_; }

 private:
  Result<TypedInstance> linked(std::string_view tenant, std::string_view type,
                               std::string_view id) const;
  Result<std::vector<TypedInstance>> roots(std::string_view tenant, size_t& skipped) const;
  const KernelAccess& kernel_;
};

// Refuses a match on a name that is not a field of the type.
Result<void> check_match(const WorkflowType& type, const any_query& query);

// Tests encoded instances against a query without decoding their records.
class Filter {
 public:
  // Both must outlive the filter.
  Filter(const WorkflowType& type, const any_query& query);
  enum class Verdict { yes, no, unreadable };
  // `bytes` is the value of a cell. Fills `out` unless it cannot be decoded.
  Verdict test(BytesView bytes, StoredInstance& out) const;

 private:
  struct Match {
    std::string_view name;
    const value* v;
    bool zero;                        // a record without the field matches
    bool possible;                    // the value has the field's kind
    std::optional<js::Value> tree{};  // of a json field, which is compared by value
  };
  static bool holds(const record::walk& at, const Match& match);

  const WorkflowType& type_;
  const any_query& query_;
  std::vector<Match> matches_;
  Bytes needle_;  // the bytes of one entry that every matching record contains
  Time after_ = 0;
};

}  // namespace pawl::lifecycle
